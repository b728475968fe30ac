"""Grading: KernelBench's metrics with intervals, over multi-turn episodes."""

from ._bootstrap import ratio_estimate
from ._metrics import THRESHOLDS, estimate, metrics, pass_at_k, summarise
from ._record import read_rows, read_summary
from ._run import episode_seed, grade
from ._scaling import Scaling, kept_turns
from ._table import render_markdown, render_table, table_rows
from ._types import Counts, Estimate, Figures, GradedTurn, GradeRow, GradeSummary, Price, Spent, TurnPoint

__all__ = [
    "THRESHOLDS",
    "Counts",
    "Estimate",
    "Figures",
    "GradeRow",
    "GradeSummary",
    "GradedTurn",
    "Price",
    "Scaling",
    "Spent",
    "TurnPoint",
    "episode_seed",
    "estimate",
    "grade",
    "kept_turns",
    "metrics",
    "pass_at_k",
    "ratio_estimate",
    "read_rows",
    "read_summary",
    "render_markdown",
    "render_table",
    "summarise",
    "table_rows",
]
