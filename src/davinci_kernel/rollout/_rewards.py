"""Rewards of the policy and selection agents; pure functions (ALGORITHMS, "One task, one step", items 4 and 5)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Literal

from davinci_kernel.gym import Verdict


def policy_reward(
    verdict: Verdict, *, lower: float, upper: float, coverage_weight: float, failure_reward: float = 0.0
) -> float | None:
    """R = C + C·clip(speedup, lower, upper) + C·w·PR, with C = 1 if CORRECT.

    Returns:
        The reward; `failure_reward` for a candidate's fault; None where the row must be dropped: the task's or our own
        fault, or a correct kernel without a speedup (too noisy to time).
    """
    if not verdict.outcome.is_candidates_fault:
        return None
    if not verdict.correct:
        return failure_reward
    if verdict.speedup is None:
        return None
    return 1.0 + min(max(verdict.speedup, lower), upper) + coverage_weight * (verdict.coverage or 0.0)


def selection_rewards(
    pool_keys: Sequence[Hashable],
    rollout_rewards: Sequence[Sequence[Sequence[float]]],
    *,
    reduce: Literal["max", "mean", "first"] = "max",
    aggregate: Literal["mean", "max"] = "mean",
) -> list[float | None]:
    """Reward of each scheme's selection: turns reduced per rollout, then aggregated over the pool's rollouts.

    Args:
        pool_keys: per scheme, what identifies its set of skills; schemes with equal keys share one pool.
        rollout_rewards: per scheme, per rollout, the rewards of the turns that have one.

    Returns:
        One reward per scheme; None where no rollout of its pool has a rewarded turn.
    """
    pools: dict[Hashable, list[float]] = {}
    for key, rollouts in zip(pool_keys, rollout_rewards, strict=True):
        pools.setdefault(key, []).extend(_reduced(turns, reduce) for turns in rollouts if turns)
    return [_reduced(pools[key], aggregate) if pools[key] else None for key in pool_keys]


def _reduced(values: Sequence[float], how: Literal["max", "mean", "first"]) -> float:
    if how == "first":
        return values[0]
    return max(values) if how == "max" else sum(values) / len(values)
