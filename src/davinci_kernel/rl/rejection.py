"""Rejection sampling of policy rows (ALGORITHMS, "Rejection sampling"): a rejected row's response mask becomes 0.

MRS, mismatch rejection sampling, compares the trainer's and the rollout engine's probability of what was sampled,
ρ = π_train/π_rollout per token, in log space clamped at ±20. PRS, profiling-based rejection sampling, thins out correct
turns whose time is mostly not spent in the candidate's own kernels.
"""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Hashable, Sequence
from typing import Literal

from davinci_kernel.rollout import Sample

Level = Literal["none", "token", "turn", "sequence", "geometric", "turn_geo"]
_CLAMP = 20.0


def log_ratios(train: Sequence[float], rollout: Sequence[float]) -> list[float]:
    """log ρ per token, clamped at ±20."""
    return [min(max(t - r, -_CLAMP), _CLAMP) for t, r in zip(train, rollout, strict=True)]


def mismatch_masks(
    samples: Sequence[Sample], train_logprobs: Sequence[Sequence[float]], *, level: Level, low: float, high: float
) -> list[list[bool]]:
    """Which response tokens stay, per sample; rows of other agents stay whole.

    Args:
        train_logprobs: per sample, per response token, under the trainer's weights.
        level: what is kept or rejected as a whole, and by which ratio: `token` a token by its ρ; `turn` a row by Πρ;
            `turn_geo` a row by its geometric mean; `sequence` and `geometric` all rows of a rollout by Πρ and by the
            geometric mean over all their tokens.
        low, high: kept where low ≤ ratio ≤ high.
    """
    ratios = [log_ratios(t, s.logprobs) for s, t in zip(samples, train_logprobs, strict=True)]
    if level == "none":
        return [[True] * len(r) for r in ratios]
    if level == "token":
        return [
            [_within(value, low, high) or s.agent != "policy" for value in r]
            for s, r in zip(samples, ratios, strict=True)
        ]
    units: dict[Hashable, list[float]] = defaultdict(list)
    for s, r in zip(samples, ratios, strict=True):
        units[_unit(s, level)].extend(r)
    geometric = level in ("geometric", "turn_geo")
    kept = {
        unit: not values or _within(sum(values) / (len(values) if geometric else 1), low, high)
        for unit, values in units.items()
    }
    return [[kept[_unit(s, level)] or s.agent != "policy"] * len(r) for s, r in zip(samples, ratios, strict=True)]


def veto(samples: Sequence[Sample], train_logprobs: Sequence[Sequence[float]], threshold: float) -> list[bool]:
    """Token veto: False for a policy row that holds a token with ρ < threshold. A threshold of 0 vetoes nothing."""
    if threshold <= 0:
        return [True] * len(samples)
    limit = math.log(threshold)
    return [
        s.agent != "policy" or all(value >= limit for value in log_ratios(t, s.logprobs))
        for s, t in zip(samples, train_logprobs, strict=True)
    ]


def profile_keep_probability(sample: Sample, *, low: float, width: float, keep_speedup: float | None = None) -> float:
    """PRS: clip((PR − low)/width, 0, 1) for a CORRECT turn; 1 for every other row and from `keep_speedup` on."""
    if sample.agent != "policy" or sample.outcome != "CORRECT":
        return 1.0
    if keep_speedup is not None and sample.speedup is not None and sample.speedup >= keep_speedup:
        return 1.0
    return min(max(((sample.coverage or 0.0) - low) / width, 0.0), 1.0)


def profile_mask(
    samples: Sequence[Sample], rng: random.Random, *, low: float, width: float, keep_speedup: float | None = None
) -> list[bool]:
    """PRS: keep each sample with its probability. One draw per sample, whatever its probability."""
    return [
        rng.random() < profile_keep_probability(s, low=low, width=width, keep_speedup=keep_speedup) for s in samples
    ]


def _within(log_ratio: float, low: float, high: float) -> bool:
    return low <= math.exp(min(max(log_ratio, -_CLAMP), _CLAMP)) <= high


def _unit(sample: Sample, level: Level) -> Hashable:
    rollout = (sample.agent, sample.group, sample.scheme, sample.rollout)
    return rollout if level in ("sequence", "geometric") else (*rollout, sample.turn)
