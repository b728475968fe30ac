"""Grading runs side by side, paired by problem. Pure.

Per problem a run has one figure of each measure: the mean over its graded samples. ``correct`` and ``fast_1`` are shares;
``speedup`` is the mean log speedup, where an incorrect or too noisy kernel counts as 1, since its user keeps the
reference. A difference is run minus base, or for ``speedup`` the ratio of the two geometric means.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import numpy as np
from pydantic import BaseModel, ConfigDict

from ._bootstrap import ratio_estimate
from ._metrics import is_fast
from ._significance import holm, sign_flip_test, sign_test
from ._types import Estimate, GradedTurn, GradeRow

Reading = Literal["last", "best"]
"""Which turn of an episode counts: the last, or its own best."""
Measure = Literal["correct", "fast_1", "speedup"]


def _log_speedup(turn: GradedTurn | None) -> float:
    speedup = turn.measured_speedup if turn else None
    return math.log(speedup) if speedup else 0.0


MEASURES: dict[Measure, Callable[[GradedTurn | None], float]] = {
    "correct": lambda turn: float(turn is not None and turn.correct),
    "fast_1": lambda turn: float(is_fast(turn, 1.0)),
    "speedup": _log_speedup,
}


class PairedTask(BaseModel):
    """One problem's figures in two runs; speedups are geometric means."""

    model_config = ConfigDict(frozen=True)
    problem: str
    name: str = ""
    base: dict[Measure, float]
    run: dict[Measure, float]


class Difference(BaseModel):
    """One measure of a run against the base's."""

    model_config = ConfigDict(frozen=True)
    measure: Measure
    difference: Estimate
    """Mean of run − base with its bootstrap interval over tasks; for ``speedup`` the geometric mean of run / base."""
    wins: int
    """Tasks in which the run's figure is higher."""
    losses: int
    ties: int
    sign_p: float
    """Two-sided exact sign test of wins against losses."""
    flip_p: float | None = None
    """Two-sided sign-flip permutation test of the log speedups' mean difference; of ``speedup`` only."""
    sign_p_holm: float
    """`sign_p` corrected by Holm over all compared runs."""
    flip_p_holm: float | None = None


class Comparison(BaseModel):
    """A run against the base run."""

    model_config = ConfigDict(frozen=True)
    base: str
    run: str
    reading: Reading
    different_caliber: tuple[str, ...] = ()
    """Fields in which the two runs' calibers differ: their numbers do not compare."""
    unpaired: int
    """Problems without a graded row in one of the two."""
    measures: tuple[Difference, ...]
    tasks: tuple[PairedTask, ...]


def compare(
    base: tuple[str, Sequence[GradeRow]],
    runs: Sequence[tuple[str, Sequence[GradeRow]]],
    *,
    reading: Reading = "last",
    different_caliber: Mapping[str, Sequence[str]] | None = None,
    seed: int = 0,
) -> list[Comparison]:
    """Each of `runs` (label, rows) against `base`, p-values corrected over all of them, measure by measure.

    Args:
        different_caliber: by a run's label, for the record.
    """
    base_name, base_rows = base
    base_figures = _by_problem(base_rows, reading)
    names = {row.problem: row.name for row in base_rows}
    found = []
    for label, rows in runs:
        figures = _by_problem(rows, reading)
        shared = sorted(base_figures.keys() & figures.keys(), key=_natural)
        differences = tuple(
            _difference(m, [figures[p][m] - base_figures[p][m] for p in shared], seed) for m in MEASURES
        )
        tasks = (
            PairedTask(problem=p, name=names.get(p, ""), base=_as_read(base_figures[p]), run=_as_read(figures[p]))
            for p in shared
        )
        comparison = Comparison(
            base=base_name,
            run=label,
            reading=reading,
            different_caliber=tuple((different_caliber or {}).get(label, ())),
            unpaired=len(base_figures.keys() ^ figures.keys()),
            measures=differences,
            tasks=tuple(tasks),
        )
        found.append(comparison)
    return _corrected(found)


def _by_problem(rows: Sequence[GradeRow], reading: Reading) -> dict[str, dict[Measure, float]]:
    turns: dict[str, list[GradedTurn | None]] = {}
    for row in rows:
        if row.fault is None:
            turns.setdefault(row.problem, []).append(row.last() if reading == "last" else row.best())
    return {
        problem: {measure: math.fsum(map(score, picked)) / len(picked) for measure, score in MEASURES.items()}
        for problem, picked in turns.items()
    }


def _difference(measure: Measure, deltas: Sequence[float], seed: int) -> Difference:
    wins, losses = sum(d > 0 for d in deltas), sum(d < 0 for d in deltas)
    sign_p = sign_test(wins, losses)
    flip_p = sign_flip_test(deltas, seed=seed) if measure == "speedup" else None
    return Difference(
        measure=measure,
        difference=ratio_estimate(deltas, [1.0] * len(deltas), seed=seed, link=np.exp if flip_p is not None else None),
        wins=wins,
        losses=losses,
        ties=len(deltas) - wins - losses,
        sign_p=sign_p,
        flip_p=flip_p,
        sign_p_holm=sign_p,
        flip_p_holm=flip_p,
    )


def _corrected(comparisons: Sequence[Comparison]) -> list[Comparison]:
    corrected: list[list[Difference]] = [[] for _ in comparisons]
    for index in range(len(MEASURES)):
        of_measure = [comparison.measures[index] for comparison in comparisons]
        signs = holm([d.sign_p for d in of_measure])
        flips = holm([d.flip_p for d in of_measure if d.flip_p is not None])
        for number, (kept, difference) in enumerate(zip(corrected, of_measure, strict=True)):
            update = {"sign_p_holm": signs[number], "flip_p_holm": flips[number] if flips else None}
            kept.append(difference.model_copy(update=update))
    return [c.model_copy(update={"measures": tuple(kept)}) for c, kept in zip(comparisons, corrected, strict=True)]


def _as_read(figures: Mapping[Measure, float]) -> dict[Measure, float]:
    return {**figures, "speedup": math.exp(figures["speedup"])}


def _natural(problem: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdigit() else (0, part) for part in problem.split("/")]
