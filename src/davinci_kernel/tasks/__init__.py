"""Tasks: KernelBench-format problems, their loaders, a built-in suite, a generator."""

from ._generator import GeneratorSpec, generate_task, with_constants
from ._loaders import load_tasks
from ._operators import OPERATORS
from ._task import Task

__all__ = ["OPERATORS", "GeneratorSpec", "Task", "generate_task", "load_tasks", "with_constants"]
