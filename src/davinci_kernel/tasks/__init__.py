"""Tasks: KernelBench-format problems, their loaders, a built-in suite, a generator."""

from ._generator import GeneratorSpec, Split, generate_task, with_constants
from ._loaders import load_reference_file, load_tasks, read_source
from ._operators import OPERATORS, Operator
from ._reference import require_reference
from ._rows import row_from_task, task_from_row
from ._suite import SuiteSpec, load_suite
from ._task import Task

__all__ = [
    "OPERATORS",
    "GeneratorSpec",
    "Operator",
    "Split",
    "SuiteSpec",
    "Task",
    "generate_task",
    "load_reference_file",
    "load_suite",
    "load_tasks",
    "read_source",
    "require_reference",
    "row_from_task",
    "task_from_row",
    "with_constants",
]
