"""Grading: KernelBench's metrics with intervals, over multi-turn episodes."""

from ._bootstrap import ratio_estimate
from ._metrics import THRESHOLDS, estimate, metrics, pass_at_k, summarise
from ._record import read_summary
from ._run import episode_seed, grade
from ._table import render_markdown, render_table, table_rows
from ._types import Counts, Estimate, GradedTurn, GradeRow, GradeSummary, TurnPoint

__all__ = [
    "THRESHOLDS",
    "Counts",
    "Estimate",
    "GradeRow",
    "GradeSummary",
    "GradedTurn",
    "TurnPoint",
    "episode_seed",
    "estimate",
    "grade",
    "metrics",
    "pass_at_k",
    "ratio_estimate",
    "read_summary",
    "render_markdown",
    "render_table",
    "summarise",
    "table_rows",
]
