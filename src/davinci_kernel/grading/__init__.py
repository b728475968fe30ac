"""Grading: KernelBench's metrics with intervals, over multi-turn episodes."""

from ._bootstrap import ratio_estimate
from ._caliber import caliber_differences
from ._compare import Comparison, Difference, PairedTask, compare
from ._kernelbench import BaselineTimes
from ._kernelbench import export_run as export_kernelbench
from ._kernelbench import import_run as import_kernelbench
from ._metrics import THRESHOLDS, estimate, metrics, pass_at_k, summarise
from ._record import read_caliber, read_rows, read_summary
from ._run import episode_seed, grade, write_run
from ._scaling import Scaling, kept_turns
from ._significance import holm, sign_flip_test, sign_test
from ._table import (
    comparison_latex,
    comparison_markdown,
    render_comparison,
    render_latex,
    render_markdown,
    render_table,
    render_tasks,
    table_rows,
)
from ._types import Counts, Estimate, Figures, GradedTurn, GradeRow, GradeSummary, Price, Spent, TurnPoint

__all__ = [
    "THRESHOLDS",
    "BaselineTimes",
    "Comparison",
    "Counts",
    "Difference",
    "Estimate",
    "Figures",
    "GradeRow",
    "GradeSummary",
    "GradedTurn",
    "PairedTask",
    "Price",
    "Scaling",
    "Spent",
    "TurnPoint",
    "caliber_differences",
    "compare",
    "comparison_latex",
    "comparison_markdown",
    "episode_seed",
    "estimate",
    "export_kernelbench",
    "grade",
    "holm",
    "import_kernelbench",
    "kept_turns",
    "metrics",
    "pass_at_k",
    "ratio_estimate",
    "read_caliber",
    "read_rows",
    "read_summary",
    "render_comparison",
    "render_latex",
    "render_markdown",
    "render_table",
    "render_tasks",
    "sign_flip_test",
    "sign_test",
    "summarise",
    "table_rows",
    "write_run",
]
