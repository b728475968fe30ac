"""KernelBench's metrics over graded rows. Pure.

- ``fast_p``: share of (task, sample) that is correct with speedup > p; ``fast_p_ge``: ≥ p (Dr.Kernel).
- A correct kernel whose timing is too noisy counts as correct and as not fast, for every p.
- A row with INFRA_ERROR or INVALID_REFERENCE in any turn is in no denominator; it is counted apart.
- ``mean_speedup`` and ``geomean_speedup`` are over correct kernels with a speedup. They say how fast the right ones are,
  and can fall when a model learns to solve harder tasks. So ``geomean_speedup_fallback`` stands beside them: over all
  graded rows, where an incorrect or too noisy kernel counts as 1, since its user keeps the reference.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from davinci_kernel.gym import Outcome

from ._bootstrap import ratio_estimate
from ._types import Counts, Estimate, Figures, GradedTurn, GradeRow, GradeSummary, Spent, TurnPoint

THRESHOLDS = (1.0, 1.2, 1.5, 2.0, 3.0)

Score = Callable[[GradedTurn | None], float | None]
"""A turn's contribution to a metric; None: not in its denominator. No turn at all is an incorrect answer."""
Pick = Callable[[GradeRow], GradedTurn | None]


def is_fast(turn: GradedTurn | None, p: float, inclusive: bool = False) -> bool:
    """Correct, measured, and faster than `p` times the reference (at least as fast, if inclusive)."""
    speedup = turn.measured_speedup if turn else None
    return speedup is not None and (speedup >= p if inclusive else speedup > p)


def _fast(p: float, inclusive: bool) -> Score:
    return lambda turn: float(is_fast(turn, p, inclusive))


def _log_speedup(turn: GradedTurn | None) -> float | None:
    speedup = turn.measured_speedup if turn else None
    return math.log(speedup) if speedup else None


SHARES: dict[str, Score] = {
    **{f"fast_{p:g}": _fast(p, False) for p in THRESHOLDS},
    **{f"fast_{p:g}_ge": _fast(p, True) for p in THRESHOLDS},
    "correct": lambda turn: float(turn is not None and turn.correct),
    "compiled": lambda turn: float(turn is not None and turn.compiled),
    "hack": lambda turn: float(turn is not None and turn.outcome is Outcome.HACK),
    "mean_speedup": lambda turn: turn.measured_speedup if turn else None,
}
"""Metrics that are plain means."""
GEOMETRIC: dict[str, Score] = {
    "geomean_speedup": _log_speedup,
    "geomean_speedup_fallback": lambda turn: _log_speedup(turn) or 0.0,
}
"""Metrics that are the exponential of a mean."""


def estimate(rows: Iterable[GradeRow], name: str, pick: Pick, seed: int = 0) -> Estimate:
    """One metric over the rows (faulty ones left out), of the turn that `pick` takes from each."""
    score = SHARES.get(name) or GEOMETRIC[name]
    tasks: dict[str, list[float]] = {}
    for row in rows:
        if row.fault is None and (value := score(pick(row))) is not None:
            tasks.setdefault(row.task_id, []).append(value)
        else:
            tasks.setdefault(row.task_id, [])
    sums, counts = [math.fsum(values) for values in tasks.values()], [len(values) for values in tasks.values()]
    return ratio_estimate(sums, counts, seed=seed, link=np.exp if name in GEOMETRIC else None)


def metrics(rows: Sequence[GradeRow], pick: Pick, seed: int = 0) -> dict[str, Estimate]:
    """Every metric of the picked turns."""
    return {name: estimate(rows, name, pick, seed) for name in (*SHARES, *GEOMETRIC)}


def pass_at_k(n: int, successes: int, k: int) -> float:
    """Unbiased chance that at least one of k samples succeeds: 1 − C(n − c, k) / C(n, k). Needs k ≤ n."""
    if not 1 <= k <= n:
        raise ValueError(f"k must be in 1..{n}, got {k}")
    return 1.0 - math.comb(n - successes, k) / math.comb(n, k)


def pass_at_ks(
    rows: Iterable[GradeRow], succeeds: Callable[[GradedTurn | None], bool], seed: int = 0
) -> dict[str, Estimate]:
    """pass@k of the last turn for k = 1, 2, 4, ... ; mean over the tasks that have k graded samples."""
    tasks: dict[str, list[bool]] = {}
    for row in rows:
        if row.fault is None:
            tasks.setdefault(row.task_id, []).append(succeeds(row.last()))
    most = max(map(len, tasks.values()), default=0)
    found = {}
    for k in (2**power for power in range(most.bit_length())):
        chances = [pass_at_k(len(wins), sum(wins), k) for wins in tasks.values() if len(wins) >= k]
        found[str(k)] = ratio_estimate(chances, [1.0] * len(chances), seed=seed)
    return found


def best_by_turn(rows: Sequence[GradeRow], seed: int = 0) -> tuple[TurnPoint, ...]:
    """Best-of-history curve over the turns. An episode that ended early stays at its best."""
    points = []
    for turns in range(1, max((len(row.turns) for row in rows), default=0) + 1):

        def pick(row: GradeRow, turns: int = turns) -> GradedTurn | None:
            return row.best(turns)

        figures = {name: estimate(rows, name, pick, seed) for name in ("correct", "fast_1", "geomean_speedup")}
        points.append(TurnPoint(turn=turns, **figures))
    return tuple(points)


def count(rows: Sequence[GradeRow]) -> Counts:
    """What became of the rows."""
    faults = [row.fault for row in rows]
    graded_last = [row.last() for row in rows if row.fault is None]
    return Counts(
        tasks=len({row.task_id for row in rows}),
        rows=len(rows),
        graded=faults.count(None),
        infra_errors=faults.count(Outcome.INFRA_ERROR),
        invalid_references=faults.count(Outcome.INVALID_REFERENCE),
        too_noisy=sum(turn is not None and turn.correct and turn.too_noisy for turn in graded_last),
        defective_tasks=len({row.task_id for row in rows if row.defective}),
        turn_outcomes=dict(sorted(Counter(turn.outcome.value for row in rows for turn in row.turns).items())),
    )


def figures(rows: Sequence[GradeRow], seed: int = 0) -> Figures:
    """Every metric of the last turn, of the best single turn, and of each episode's best turn."""

    def pick_turn(number: int) -> Pick:
        return lambda row: row.at(number - 1)

    def rank(number: int) -> tuple[float, float, int]:
        picked = [pick_turn(number)(row) for row in rows if row.fault is None]
        return (
            sum(is_fast(turn, 1.0) for turn in picked),
            sum(turn is not None and turn.correct for turn in picked),
            -number,
        )

    number = max(range(1, max((len(row.turns) for row in rows), default=0) + 1), key=rank, default=0)
    return Figures(
        last=metrics(rows, GradeRow.last, seed),
        best_turn=metrics(rows, pick_turn(number), seed) if number else {},
        best_turn_number=number,
        best=metrics(rows, GradeRow.best, seed),
    )


def summarise(rows: Iterable[GradeRow], seed: int = 0, finished: str = "") -> GradeSummary:
    """All figures of one run. Rows may come in any order: the result does not depend on it."""
    rows = sorted(rows, key=lambda row: (row.task_id, row.sample))
    sound = [row for row in rows if not row.defective]
    subsets = {"without defective": sound}
    for level in sorted({row.level for row in rows if row.level is not None}):
        subsets[f"level {level}"] = [row for row in rows if row.level == level]
        subsets[f"level {level} without defective"] = [row for row in sound if row.level == level]
    everything = figures(rows, seed)
    return GradeSummary(
        **{name: getattr(everything, name) for name in Figures.model_fields},
        best_by_turn=best_by_turn(rows, seed),
        pass_at_k=pass_at_ks(rows, lambda turn: turn is not None and turn.correct, seed),
        fast_1_at_k=pass_at_ks(rows, lambda turn: is_fast(turn, 1.0), seed),
        subsets={name: figures(chosen, seed) for name, chosen in subsets.items()},
        spent=sum((row.spent for row in rows), Spent()),
        n=count(rows),
        finished=finished,
    )
