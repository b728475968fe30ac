"""`Plan`: the optimisation techniques of one kernel, as choices that can be taken one by one."""

from __future__ import annotations

import random
from dataclasses import asdict, dataclass, replace

TECHNIQUES = ("parallel", "fused", "single", "fast_math", "wide")
"""Order in which differences between plans are named."""


@dataclass(frozen=True)
class Plan:
    """Optimisation level of a kernel.

    Attributes:
        parallel: rows are shared among threads by OpenMP.
        fused: one pass over memory, the row stays in cache; otherwise one pass per operator.
        single: arithmetic in float; otherwise in double.
        fast_math: compiled with -ffast-math, which lets the compiler vectorise exp, tanh and sums.
        wide: compiled with -mprefer-vector-width=512 (the compiler's default on AVX-512 machines is 256 bits).
    """

    parallel: bool = False
    fused: bool = False
    single: bool = False
    fast_math: bool = False
    wide: bool = False

    def with_(self, technique: str) -> Plan:
        """This plan with one technique more. Raises ValueError for an unknown name."""
        if technique not in TECHNIQUES:
            raise ValueError(f"unknown technique {technique!r}; known: {', '.join(TECHNIQUES)}")
        return replace(self, **{technique: True})

    def gained_over(self, other: Plan) -> tuple[str, ...]:
        """Techniques that this plan has and the other lacks."""
        mine, theirs = asdict(self), asdict(other)
        return tuple(t for t in TECHNIQUES if mine[t] and not theirs[t])

    def missing(self) -> tuple[str, ...]:
        return tuple(t for t, on in asdict(self).items() if not on)


@dataclass(frozen=True)
class Habits:
    """How often an unguided writer uses each technique: what the cold-start model knows by itself.

    The compiler flags are rare: they are to be reached through feedback and through skills, so that there is something to
    learn.
    """

    parallel: float = 0.5
    fused: float = 0.6
    single: float = 0.6
    fast_math: float = 0.04
    wide: float = 0.04

    def draw(self, rng: random.Random) -> Plan:
        return Plan(**{t: rng.random() < p for t, p in asdict(self).items()})


def improve(plan: Plan, rng: random.Random) -> Plan:
    """One revision: one or two missing techniques are added; a plan that lacks none is kept."""
    missing = list(plan.missing())
    rng.shuffle(missing)
    for technique in missing[: rng.choice((1, 1, 2))]:
        plan = plan.with_(technique)
    return plan
