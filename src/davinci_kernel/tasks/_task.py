"""`Task`: one problem in KernelBench's format."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any


@dataclass(frozen=True)
class Task:
    """A reference module that a kernel must reproduce, faster.

    Attributes:
        task_id: stable, unique in its source, e.g. ``kernelbench/2/66``, ``suite/1/gelu``, ``gen/train/0/17``.
        code: Python source that defines ``<entry_point>``, ``get_inputs()`` and ``get_init_inputs()``.
        name: short name for people.
        level: difficulty level (KernelBench: 1 single operators, 2 fused chains, 3 blocks and models), if known.
        entry_point: class name of the reference; a candidate defines ``<entry_point>New``.
        metadata: JSON-able facts about the task (operators, shapes, split, problem_id ...).
    """

    task_id: str
    code: str
    name: str = ""
    level: int | None = None
    entry_point: str = "Model"
    metadata: dict[str, Any] = field(default_factory=dict, hash=False)

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 (16 hex digits) of entry point and code: the identity of the problem whatever its name."""
        return hashlib.sha256(f"{self.entry_point}\0{self.code}".encode()).hexdigest()[:16]
