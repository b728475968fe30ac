"""Rejection sampling against numbers worked out by hand."""

import math
import random

import pytest

from davinci_kernel.rl import mismatch_masks, profile_keep_probability, profile_mask, veto
from davinci_kernel.rollout import Sample


def row(logprobs, agent="policy", rollout=0, turn=0, outcome="CORRECT", coverage=1.0, speedup=1.0) -> Sample:
    return Sample(
        agent=agent,
        task_id="t",
        group="t",
        rollout=rollout,
        turn=turn,
        prompt_ids=(1,),
        response_ids=tuple(range(len(logprobs))),
        logprobs=tuple(logprobs),
        reward=0.0,
        outcome=outcome,
        coverage=coverage,
        speedup=speedup,
    )


# Two turns of one rollout: turn 0 is off by factors 2 and 1/2, turn 1 by 4. Another rollout matches exactly.
SAMPLES = [row([0.0, 0.0]), row([0.0], turn=1), row([0.0], rollout=1)]
TRAIN = [[math.log(2), -math.log(2)], [math.log(4)], [0.0]]


def masks(level, low=0.5, high=1.6, samples=SAMPLES):
    return mismatch_masks(samples, TRAIN, level=level, low=low, high=high)


def test_token_level_drops_single_tokens():
    assert masks("token", low=0.6) == [[False, False], [False], [True]]
    assert masks("token", low=0.4, high=2.1) == [[True, True], [False], [True]]


def test_turn_levels_judge_a_row():
    assert masks("turn") == [[True, True], [False], [True]]  # 2 · 1/2 = 1, 4, 1
    assert masks("turn_geo", high=3.9) == [[True, True], [False], [True]]


def test_rollout_levels_judge_all_turns_together():
    assert masks("sequence") == [[False, False], [False], [True]]  # 2 · 1/2 · 4 = 4
    # geometric mean 4^(1/3) = 1.587
    assert masks("geometric", high=1.6) == [[True, True], [True], [True]]
    assert masks("geometric", high=1.5) == [[False, False], [False], [True]]


def test_none_keeps_all_and_other_agents_are_never_rejected():
    assert masks("none") == [[True, True], [True], [True]]
    others = [row([0.0, 0.0], agent="selection"), row([0.0], agent="summary"), row([0.0])]
    assert masks("token", low=1.0, high=1.0, samples=others) == [[True, True], [True], [True]]


def test_published_window():
    inside, outside = [[0.0005]], [[0.0011]]
    for train, kept in ((inside, True), (outside, False)):
        assert mismatch_masks([row([0.0])], train, level="geometric", low=0.999, high=1.001) == [[kept]]


def test_empty_responses_are_kept_whole():
    assert mismatch_masks([row([])], [[]], level="geometric", low=0.999, high=1.001) == [[]]


def test_ratios_are_clamped_rather_than_overflowing():
    assert mismatch_masks([row([-1e6])], [[0.0]], level="token", low=0.0, high=math.exp(20)) == [[True]]


def test_veto_looks_for_one_impossible_token():
    samples = [row([0.0, 0.0]), row([0.0, 0.0]), row([0.0, 0.0], agent="summary")]
    train = [[0.0, math.log(2e-4)], [0.0, math.log(5e-5)], [0.0, -30.0]]
    assert veto(samples, train, 1e-4) == [True, False, True]
    assert veto(samples, train, 0.0) == [True, True, True]


@pytest.mark.parametrize(
    ("coverage", "keep"), [(0.0, 0.0), (0.3, 0.0), (0.35, 0.5), (0.4, 1.0), (1.0, 1.0), (None, 0.0)]
)
def test_profile_probability_is_a_ramp(coverage, keep):
    assert profile_keep_probability(row([0.0], coverage=coverage), low=0.3, width=0.1) == pytest.approx(keep)


def test_profile_keeps_incorrect_fast_and_foreign_rows():
    kept = {"low": 0.3, "width": 0.1, "keep_speedup": 2.0}
    assert profile_keep_probability(row([0.0], outcome="WRONG_VALUE", coverage=None), **kept) == 1.0
    assert profile_keep_probability(row([0.0], coverage=0.1, speedup=2.0), **kept) == 1.0
    assert profile_keep_probability(row([0.0], coverage=0.1, speedup=1.9), **kept) == 0.0
    assert profile_keep_probability(row([0.0], coverage=0.1, agent="summary"), **kept) == 1.0


def test_profile_mask_keeps_the_right_share_and_repeats_with_its_seed():
    samples = [row([0.0], coverage=0.35)] * 2000
    mask = profile_mask(samples, random.Random(0), low=0.3, width=0.1)
    assert 900 < sum(mask) < 1100
    assert mask == profile_mask(samples, random.Random(0), low=0.3, width=0.1)
