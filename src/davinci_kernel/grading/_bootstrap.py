"""Ratio estimates with bootstrap intervals clustered by task.

Samples of one task are not independent, so whole tasks are resampled. Every figure of the grading room is a ratio of
sums over rows (a mean, or the logarithm of a geometric mean): per task only the two sums matter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ._types import Estimate

RESAMPLES = 2000


def ratio_estimate(
    numerators: Sequence[float],
    denominators: Sequence[float],
    *,
    seed: int = 0,
    resamples: int = RESAMPLES,
    link: Callable[[np.ndarray], np.ndarray] | None = None,
) -> Estimate:
    """link(Σ numerators / Σ denominators) with its 95 % percentile interval.

    Args:
        numerators: per task, the sum over its rows.
        denominators: per task, the number of rows behind it; 0 where the task has none.
        link: monotone map of the ratio, e.g. `np.exp` for a geometric mean; None: identity.

    Returns:
        The estimate, `n` = Σ denominators. Resamples without any row are left out.
    """
    top_T, bottom_T = np.asarray(numerators, float), np.asarray(denominators, float)
    total = bottom_T.sum()
    if total == 0:
        return Estimate(value=0.0, low=0.0, high=0.0, n=0)
    chosen_BT = np.random.default_rng(seed).integers(len(top_T), size=(resamples, len(top_T)))
    bottom_B = bottom_T[chosen_BT].sum(axis=1)
    ratio_B = top_T[chosen_BT].sum(axis=1)[bottom_B > 0] / bottom_B[bottom_B > 0]
    figures = np.array([top_T.sum() / total, *np.percentile(ratio_B, [2.5, 97.5])])
    value, low, high = (link(figures) if link else figures).tolist()
    return Estimate(value=value, low=low, high=high, n=int(total))
