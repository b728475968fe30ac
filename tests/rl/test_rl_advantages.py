"""Advantages against numbers worked out by hand."""

import pytest

from davinci_kernel.rl import compute_advantages, leave_one_out, returns
from davinci_kernel.rollout import Sample


def row(agent="policy", group="t", scheme=0, rollout=0, turn=0, reward=0.0, tokens=1) -> Sample:
    ids = tuple(range(tokens))
    return Sample(
        agent=agent,
        task_id=group,
        group=group,
        scheme=scheme,
        rollout=rollout,
        turn=turn,
        prompt_ids=(1,),
        response_ids=ids,
        logprobs=(0.0,) * tokens,
        reward=reward,
    )


def advantages(samples, gamma=1.0, normalize=False):
    return compute_advantages(
        samples, gamma=gamma, cross_scheme_normalization=normalize, selection_weight=0.3, summary_weight=0.5
    )


def test_returns_sum_the_turns_from_each_on():
    assert returns({0: 1.0, 1: 2.0, 2: 3.0}, 1.0) == {0: 6.0, 1: 5.0, 2: 3.0}


def test_returns_discount_over_turns_also_over_a_missing_one():
    assert returns({0: 1.0, 1: 2.0, 2: 4.0}, 0.5) == {2: 4.0, 1: 4.0, 0: 3.0}
    assert returns({0: 1.0, 2: 4.0}, 0.5) == {2: 4.0, 0: 2.0}
    assert returns({}, 0.5) == {}


def test_leave_one_out_is_n_over_n_minus_1_times_the_centred_value():
    values = [1.0, 2.0, 6.0]
    assert leave_one_out(values) == pytest.approx([3 / 2 * (v - 3.0) for v in values])
    assert leave_one_out([1.0, 2.0, 6.0]) == pytest.approx([-3.0, -1.5, 4.5])


def test_a_group_of_one_keeps_its_return_and_ties_are_zero():
    assert leave_one_out([4.0]) == [4.0]
    assert leave_one_out([2.0, 2.0, 2.0]) == [0.0, 0.0, 0.0]
    assert leave_one_out([]) == []


@pytest.mark.parametrize("reward", [0.1, 3.37, 2.9, -0.7])
@pytest.mark.parametrize("count", [2, 3, 7, 16])
def test_ties_teach_nothing_however_their_sum_rounds(reward, count):
    assert leave_one_out([reward] * count) == [0.0] * count
    assert advantages([row(rollout=i, reward=reward) for i in range(count)], normalize=True) == [0.0] * count


def test_policy_groups_are_task_and_turn_over_all_schemes():
    samples = [
        row(scheme=0, rollout=0, turn=0, reward=1.0),
        row(scheme=0, rollout=0, turn=1, reward=2.0),
        row(scheme=1, rollout=0, turn=0, reward=5.0),  # no second turn
        row(group="other", reward=7.0),
    ]
    # returns: 3, 2, 5 and 7; turn 0 of t: {3, 5}; turn 1 of t alone; the other task alone
    assert advantages(samples) == [-2.0, 2.0, 2.0, 7.0]


def test_gamma_below_one_reaches_the_advantages():
    samples = [row(turn=0, reward=1.0), row(turn=1, reward=4.0), row(rollout=1, turn=0, reward=2.0)]
    assert advantages(samples, gamma=0.25) == [0.0, 4.0, 0.0]  # returns 2, 4, 2


def test_selection_and_summary_rows_have_their_own_groups_and_weights():
    samples = [
        row("selection", scheme=0, reward=1.0),
        row("selection", scheme=1, reward=3.0),
        row("summary", rollout=0, reward=0.0),
        row("summary", rollout=1, reward=2.0),
        row("summary", rollout=2, reward=4.0),
    ]
    assert advantages(samples) == pytest.approx([-0.6, 0.6, -1.5, 0.0, 1.5])


def test_cross_scheme_normalization_divides_by_the_mean_over_tokens():
    samples = [row(rollout=0, reward=0.0, tokens=1), row(rollout=1, reward=2.0, tokens=3)]
    # advantages -2 and 2; mean absolute advantage over 1 + 3 tokens = 2
    assert advantages(samples, normalize=True) == [-1.0, 1.0]
    uneven = [row(rollout=0, reward=0.0), row(rollout=1, reward=3.0), row(rollout=2, reward=3.0, tokens=2)]
    # advantages -3, 1.5, 1.5 over 1, 1, 2 tokens: (3 + 1.5 + 3) / 4 = 1.875
    assert advantages(uneven, normalize=True) == pytest.approx([-1.6, 0.8, 0.8])


def test_normalization_leaves_ties_and_other_agents_alone():
    samples = [row(rollout=0, reward=1.0), row(rollout=1, reward=1.0), row("selection", reward=2.0)]
    assert advantages(samples, normalize=True) == pytest.approx([0.0, 0.0, 0.6])
