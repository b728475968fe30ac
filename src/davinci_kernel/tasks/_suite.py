"""The built-in suite: our own problems in KernelBench's format, as files in `suite/`.

A file is a whole reference at size 1, where it runs in milliseconds on a CPU. Lines such as ``ROWS = 512  # size`` are the
constants that grow with the size factor; memory and work grow linearly with it, but for attention (quadratically).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib import resources

from pydantic import BaseModel, ConfigDict, Field

from davinci_kernel.errors import UserError

from ._task import Task

_SCALED = re.compile(r"^([A-Z_]+) = (\d+)  # size$", re.MULTILINE)
_FILE = re.compile(r"level(\d)_(\w+)\.py")


class SuiteSpec(BaseModel):
    """Options of the suite."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)
    size: float = Field(1.0, gt=0, le=1e6)
    """Factor on the scaled dimension of every problem."""


def load_suite(levels: Sequence[int] = (), size: float = 1.0) -> list[Task]:
    """The suite's tasks, `suite/<level>/<name>`, by level and name. Levels: 1 operators, 2 fused chains, 3 blocks.

    Raises:
        UserError: `size` is not positive.
    """
    if not 0 < size < float("inf"):
        raise UserError(f"size {size:g}: expected a positive factor")
    tasks = []
    for file in sorted(resources.files(__package__).joinpath("suite").iterdir(), key=lambda f: f.name):
        if (match := _FILE.fullmatch(file.name)) and (not levels or int(match[1]) in levels):
            code = _SCALED.sub(
                lambda m: f"{m[1]} = {max(1, round(int(m[2]) * size))}", file.read_text(encoding="utf-8")
            )
            metadata = {"size": size}
            tasks.append(Task(f"suite/{match[1]}/{match[2]}", code, match[2], level=int(match[1]), metadata=metadata))
    return tasks
