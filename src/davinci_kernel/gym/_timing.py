"""Statistics of interleaved timings; pure functions."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

_T_975 = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip
"""Student's t, 97.5 % quantile, for 1 to 30 degrees of freedom."""


@dataclass(frozen=True)
class Speedup:
    """A ratio of times with its 95 % interval; `relative` is the half-width of the log interval as a factor minus 1."""

    value: float
    low: float
    high: float

    @property
    def relative(self) -> float:
        return math.sqrt(self.high / self.low) - 1.0


def process_ratio(reference: Sequence[float], candidate: Sequence[float]) -> float:
    """Median reference time / median candidate time of one process's rounds."""
    return statistics.median(reference) / statistics.median(candidate)


def combine(ratios: Sequence[float]) -> Speedup | None:
    """The speedup over processes: geometric mean, and Student's t interval of the mean log ratio.

    Args:
        ratios: one per process, positive; None is returned for fewer than two.
    """
    if len(ratios) < 2:
        return None
    logs = [math.log(ratio) for ratio in ratios]
    mean = statistics.fmean(logs)
    quantile = _T_975[len(logs) - 2] if len(logs) - 2 < len(_T_975) else 1.96
    half = quantile * statistics.stdev(logs) / math.sqrt(len(logs))
    return Speedup(math.exp(mean), math.exp(mean - half), math.exp(mean + half))


def contended(times: Sequence[float], switches: Sequence[int]) -> list[bool]:
    """Which rounds were disturbed: the process was preempted and the time is over 1.5 times the median of all."""
    if not times:
        return []
    limit = 1.5 * statistics.median(times)
    return [count > 0 and value > limit for value, count in zip(times, switches, strict=True)]
