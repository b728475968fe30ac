"""Tasks: KernelBench-format problems, their loaders, a built-in suite, a generator."""

from ._task import Task

__all__ = ["Task"]
