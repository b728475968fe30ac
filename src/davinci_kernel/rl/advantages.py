"""Advantages of the three agents (ALGORITHMS, "Advantages"); one number per row, for all of its response tokens.

Policy, TRLOO: return G_t = Σ_{t'≥t} γ^{t'-t} R_{t'} over the turns of the rollout that exist; the baseline of a row is the
mean return of the *other* rows of its (task, turn). No division by a standard deviation. A row without company keeps its
return.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Sequence

from davinci_kernel.rollout import Sample


def returns(rewards: dict[int, float], gamma: float) -> dict[int, float]:
    """Discounted return of each turn that exists: keys are turn numbers, gaps discount by their width."""
    result: dict[int, float] = {}
    following, previous = 0.0, None
    for turn in sorted(rewards, reverse=True):
        discount = gamma ** (previous - turn) if previous is not None else 0.0
        following = rewards[turn] + discount * following
        result[turn], previous = following, turn
    return result


def leave_one_out(values: Sequence[float]) -> list[float]:
    """Each value minus the mean of the others; a lone value stays.

    Summed over differences, so that equal values give exactly 0: the rounding error of a mean would become ±1 once
    `cross_scheme_normalization` divides it by its own size.
    """
    if len(values) == 1:
        return list(values)
    return [math.fsum(value - other for other in values) / (len(values) - 1) for value in values]


def compute_advantages(
    samples: Sequence[Sample],
    *,
    gamma: float,
    cross_scheme_normalization: bool,
    selection_weight: float,
    summary_weight: float,
) -> list[float]:
    """One advantage per sample, in the order given.

    Policy rows are grouped by (group, turn) over all schemes and rollouts, selection and summary rows by group.
    `cross_scheme_normalization` divides the policy advantages of a task by the mean absolute advantage over its tokens.
    """
    values = _returns_or_rewards(samples, gamma)
    groups: dict[Hashable, list[int]] = defaultdict(list)
    for index, sample in enumerate(samples):
        turn = sample.turn if sample.agent == "policy" else 0
        groups[sample.agent, sample.group, turn].append(index)
    advantages = [0.0] * len(samples)
    for members in groups.values():
        for index, advantage in zip(members, leave_one_out([values[i] for i in members]), strict=True):
            advantages[index] = advantage
    if cross_scheme_normalization:
        _normalize_policy(samples, advantages)
    weights = {"policy": 1.0, "selection": selection_weight, "summary": summary_weight}
    return [weights[sample.agent] * advantage for sample, advantage in zip(samples, advantages, strict=True)]


def _returns_or_rewards(samples: Sequence[Sample], gamma: float) -> list[float]:
    rollouts: dict[Hashable, dict[int, float]] = defaultdict(dict)
    for s in samples:
        if s.agent == "policy":
            rollouts[s.group, s.scheme, s.rollout][s.turn] = s.reward
    discounted = {key: returns(rewards, gamma) for key, rewards in rollouts.items()}
    return [discounted[s.group, s.scheme, s.rollout][s.turn] if s.agent == "policy" else s.reward for s in samples]


def _normalize_policy(samples: Sequence[Sample], advantages: list[float]) -> None:
    totals: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for sample, advantage in zip(samples, advantages, strict=True):
        if sample.agent == "policy":
            totals[sample.group][0] += abs(advantage) * len(sample.response_ids)
            totals[sample.group][1] += len(sample.response_ids)
    for index, sample in enumerate(samples):
        weighted, tokens = totals[sample.group]
        if sample.agent == "policy" and weighted > 0:
            advantages[index] /= weighted / tokens
