"""Tasks: KernelBench-format problems, their loaders, a built-in suite, a generator."""

from ._audit import AuditRow, Finding, FindingName, GradingTolerance, audit_tasks, count_findings
from ._defective import known_defects
from ._generator import GeneratorSpec, Split, generate_task, with_constants
from ._loaders import load_reference_file, load_tasks, read_source
from ._operators import OPERATORS, Operator
from ._reference import require_reference
from ._rows import row_from_task, task_from_row
from ._suite import SuiteSpec, load_suite
from ._task import Task

__all__ = [
    "OPERATORS",
    "AuditRow",
    "Finding",
    "FindingName",
    "GeneratorSpec",
    "GradingTolerance",
    "Operator",
    "Split",
    "SuiteSpec",
    "Task",
    "audit_tasks",
    "count_findings",
    "generate_task",
    "known_defects",
    "load_reference_file",
    "load_suite",
    "load_tasks",
    "read_source",
    "require_reference",
    "row_from_task",
    "task_from_row",
    "with_constants",
]
