"""Tests of paired differences, and their correction for several comparisons. Pure.

Sign test: Conover, Practical Nonparametric Statistics, section 3.4. Sign-flip test: Good, Permutation, Parametric and Bootstrap Tests of Hypotheses,
section 3.2. Holm: Scandinavian Journal of Statistics 6 (1979), 65-70.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

EXACT_PAIRS = 14
"""Up to this many non-zero differences, all 2^n sign patterns are counted."""
FLIPS = 20_000


def sign_test(wins: int, losses: int) -> float:
    """Two-sided exact p-value of wins against losses, ties left out: 2·P(X ≥ max) for X ~ Binomial(n, 1/2), at most 1."""
    n = wins + losses
    tail = sum(math.comb(n, i) for i in range(max(wins, losses), n + 1))
    return min(1.0, 2 * tail / 2**n)


def sign_flip_test(differences: Sequence[float], *, seed: int = 0, flips: int = FLIPS) -> float:
    """Two-sided p-value of the mean of paired differences under random signs.

    Exact for up to `EXACT_PAIRS` non-zero differences; else (1 + as extreme) / (1 + `flips`) over drawn signs.
    """
    values_N = np.asarray([d for d in differences if d], float)
    n = len(values_N)
    if n == 0:
        return 1.0
    if n <= EXACT_PAIRS:
        signs_BN = 1 - 2 * ((np.arange(2**n)[:, None] >> np.arange(n)) & 1)
        extreme = _as_extreme(signs_BN, values_N)
        return float(extreme.mean())
    signs_BN = np.random.default_rng(seed).choice(np.array([-1, 1], np.int8), size=(flips, n))
    return float((1 + _as_extreme(signs_BN, values_N).sum()) / (1 + flips))


def _as_extreme(signs_BN: np.ndarray, values_N: np.ndarray) -> np.ndarray:
    """Which sign patterns give a sum at least as far from 0; rounding apart."""
    return np.abs(signs_BN @ values_N) >= abs(values_N.sum()) - 1e-12 * np.abs(values_N).sum()


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's adjusted p-values, in the order given."""
    adjusted = [0.0] * len(p_values)
    largest = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = largest
    return adjusted
