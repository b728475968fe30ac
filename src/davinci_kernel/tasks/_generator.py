"""Unlimited seeded tasks: random chains of operators, with disjoint train and held-out splits.

Whether a chain belongs to `train` or `heldout` is decided by a hash of its operators and constants, whatever its seed,
index and shape. A draw of the other split is drawn again, and so is a chain that is out of scale or nearly
constant, is blind to one of its inputs, or has an operator that does nothing (`_probe.is_meaningful`).
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from davinci_kernel.errors import UserError

from ._operators import OPERATORS, TAILS, Operator
from ._task import Task

Split = Literal["train", "heldout"]
Size = Annotated[int, Field(ge=2)]
HELDOUT_SHARE = 0.2
_GRID = 0.05
_MOST_DRAWS = 1000


class GeneratorSpec(BaseModel):
    """What chains look like."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)
    min_ops: int = Field(2, ge=1)
    """Pointwise operators at least, tail not counted."""
    max_ops: int = Field(4, ge=1)
    """Pointwise operators at most."""
    operators: tuple[str, ...] = ()
    """Pointwise operators; empty: all."""
    tails: tuple[str, ...] = TAILS
    """Reductions and normalisations that may end a chain."""
    tail_probability: float = Field(0.5, ge=0, le=1)
    """Share of chains with a tail."""
    shapes: tuple[tuple[Size, Size], ...] = Field(((1024, 1024), (512, 2048), (2048, 512)), min_length=1)
    """Shapes (rows, cols) of the first input."""

    @model_validator(mode="after")
    def _known(self) -> GeneratorSpec:
        if self.min_ops > self.max_ops:
            raise ValueError(f"min_ops={self.min_ops} is more than max_ops={self.max_ops}")
        pointwise = [o.name for o in OPERATORS.values() if o.name not in TAILS]
        if unknown := [name for name in self.operators if name not in pointwise]:
            raise ValueError(f"operators: unknown {unknown[0]!r}; known: {', '.join(pointwise)}")
        if unknown := [name for name in self.tails if name not in TAILS]:
            raise ValueError(f"tails: unknown {unknown[0]!r}; known: {', '.join(TAILS)}")
        return self


def generate_task(seed: int, index: int, split: Split, spec: GeneratorSpec) -> Task:
    """The task at `index` of an endless sequence: the same for the same arguments, on every machine.

    Raises:
        UserError: the spec allows so few chains that none is in the split.
    """
    rng = random.Random(f"generator/{seed}/{index}/{split}/{spec.model_dump_json()}")
    steps = _first_fit((_draw(rng, spec) for _ in range(_MOST_DRAWS)), split)
    if steps is None:
        raise UserError(
            f"generator: no chain of this spec fits the split {split!r}; allow more operators or longer chains"
        )
    return task_from_steps(steps, rng.choice(spec.shapes), f"gen/{split}/{seed}/{index}", split, seed, index)


def with_constants(task: Task, seed: int) -> Task:
    """The same chain and shape with other constants, of the same split; the task itself where there are none."""
    rng = random.Random(f"constants/{seed}")
    meta = task.metadata
    if all("value" not in step for step in meta["steps"]):
        return task
    draws = (
        [step | {"value": _value(rng, OPERATORS[step["op"]])} if "value" in step else step for step in meta["steps"]]
        for _ in range(_MOST_DRAWS)
    )
    steps = _first_fit(draws, meta["split"])
    if steps is None:
        return task
    return task_from_steps(steps, tuple(meta["shape"]), task.task_id, meta["split"], meta["seed"], meta["index"])


def _first_fit(draws: Iterator[list[dict[str, Any]]], split: Split) -> list[dict[str, Any]] | None:
    from ._probe import is_meaningful  # imports torch, which readers of `Task` do not need

    return next((steps for steps in draws if split_of(steps) == split and is_meaningful(steps)), None)


def split_of(steps: list[dict[str, Any]]) -> Split:
    """The split that a chain belongs to."""
    digest = hashlib.sha256(json.dumps(steps, sort_keys=True).encode()).digest()
    return "heldout" if int.from_bytes(digest[:4], "big") / 2**32 < HELDOUT_SHARE else "train"


def task_from_steps(
    steps: list[dict[str, Any]], shape: tuple[int, int], task_id: str, split: Split, seed: int, index: int
) -> Task:
    """The task that computes a chain."""
    rows, cols = shape
    shapes = {"row": f"{cols}", "column": f"{rows}, 1", "tensor": f"{rows}, {cols}"}
    extras = [(step["input"], step["layout"]) for step in steps if "input" in step]
    expressions = [OPERATORS[s["op"]].torch.format(x="x", value=s.get("value"), b=s.get("input")) for s in steps]
    uses_f = any("F." in expression for expression in expressions)
    inputs = [f"torch.randn({rows}, {cols})", *(f"torch.randn({shapes[layout]})" for _, layout in extras)]
    code = "\n".join(
        [
            "import torch",
            "import torch.nn as nn",
            *(["import torch.nn.functional as F"] if uses_f else []),
            "",
            "",
            "class Model(nn.Module):",
            f"    def forward(self, {', '.join(['x', *(name for name, _ in extras)])}):",
            *(f"        x = {expression}" for expression in expressions),
            "        return x",
            "",
            "",
            "def get_inputs():",
            f"    return [{', '.join(inputs)}]",
            "",
            "",
            "def get_init_inputs():",
            "    return []",
            "",
        ]
    )
    metadata = {"split": split, "seed": seed, "index": index, "shape": [rows, cols], "steps": steps, "inputs": inputs}
    name = "_".join(step["op"] for step in steps)
    return Task(task_id, code, name=name, level=1 if len(steps) == 1 else 2, metadata=metadata)


def _draw(rng: random.Random, spec: GeneratorSpec) -> list[dict[str, Any]]:
    names = spec.operators or tuple(o.name for o in OPERATORS.values() if o.name not in TAILS)
    steps: list[dict[str, Any]] = []
    for _ in range(rng.randint(spec.min_ops, spec.max_ops)):
        operator = OPERATORS[rng.choice(names)]
        step: dict[str, Any] = {"op": operator.name}
        if operator.kind == "scalar":
            step["value"] = _value(rng, operator)
        if operator.layout:
            step |= {"input": f"b{sum('input' in s for s in steps)}", "layout": operator.layout}
        steps.append(step)
    if spec.tails and rng.random() < spec.tail_probability:
        steps.append({"op": rng.choice(spec.tails)})
    return steps


def _value(rng: random.Random, operator: Operator) -> float:
    low, high = operator.values
    choices = [round(i * _GRID, 2) for i in range(round(low / _GRID), round(high / _GRID) + 1)]
    return rng.choice([value for value in choices if value not in (0.0, 1.0)])
