"""Rewards against numbers worked out by hand."""

import pytest

from davinci_kernel.gym import Outcome, Verdict
from davinci_kernel.rollout import policy_reward, selection_rewards

BOUNDS = {"lower": 0.0, "upper": 6.0, "coverage_weight": 0.5}


def verdict(outcome=Outcome.CORRECT, **fields) -> Verdict:
    return Verdict(outcome=outcome, **fields)


@pytest.mark.parametrize(
    ("speedup", "coverage", "expected"),
    [(1.5, 0.8, 1 + 1.5 + 0.4), (9.0, 1.0, 1 + 6.0 + 0.5), (0.25, None, 1.25), (2.0, 0.0, 3.0)],
)
def test_policy_reward_of_correct_kernels(speedup, coverage, expected):
    assert policy_reward(verdict(speedup=speedup, coverage=coverage), **BOUNDS) == pytest.approx(expected)


@pytest.mark.parametrize(
    "outcome", [o for o in Outcome if o not in (Outcome.CORRECT, Outcome.INFRA_ERROR, Outcome.INVALID_REFERENCE)]
)
def test_every_fault_of_the_candidate_is_worth_the_failure_reward(outcome):
    assert policy_reward(verdict(outcome, speedup=5.0, coverage=1.0), **BOUNDS) == 0.0
    assert policy_reward(verdict(outcome), failure_reward=-1.0, **BOUNDS) == -1.0


def test_rows_that_nobody_could_judge_are_dropped():
    for outcome in (Outcome.INFRA_ERROR, Outcome.INVALID_REFERENCE):
        assert policy_reward(verdict(outcome), failure_reward=-1.0, **BOUNDS) is None
    assert policy_reward(verdict(too_noisy=True), **BOUNDS) is None


def test_selection_reward_reduces_turns_then_averages_rollouts():
    rollouts = [[[1.0, 3.0], [2.0]], [[4.0, 0.0]]]
    assert selection_rewards(["a", "b"], rollouts) == [2.5, 4.0]
    assert selection_rewards(["a", "b"], rollouts, reduce="mean") == [2.0, 2.0]
    assert selection_rewards(["a", "b"], rollouts, reduce="first", aggregate="max") == [2.0, 4.0]


def test_schemes_with_the_same_skills_share_a_pool():
    assert selection_rewards([("x",), ("y",), ("x",)], [[[1.0]], [[9.0]], [[2.0], [6.0]]]) == [3.0, 9.0, 3.0]


def test_a_pool_without_rewarded_turns_has_no_reward():
    assert selection_rewards(["a", "b"], [[[], []], [[1.0]]]) == [None, 1.0]
