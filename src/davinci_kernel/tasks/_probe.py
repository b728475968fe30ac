"""Whether a chain of operators is worth measuring, found by running it on a small fixed sample in float64."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import Any

import torch

from ._operators import OPERATORS

ROWS, COLS = 8, 256  # few enough that torch wakes no second thread (but for layer_norm)
LARGEST = 300.0
"""Running values stay below this, so that float32 rounding stays far from any tolerance, through exp, sin and squares."""
SMALLEST_SPREAD = 0.02
"""Standard deviation over root mean square that the output needs, and that each input must be able to change."""

_SHAPES = {"row": (COLS,), "column": (ROWS, 1), "tensor": (ROWS, COLS)}


def is_meaningful(steps: Sequence[dict[str, Any]]) -> bool:
    """True when the chain is finite, of moderate scale, not (nearly) constant, and needs every step and input."""
    output = _run(steps, {})
    if output is None:
        return False
    scale = SMALLEST_SPREAD * _rms(output)
    if not _rms(output - output.mean()) > scale:
        return False
    for name in ("x", *(step["input"] for step in steps if "input" in step)):
        changed = _run(steps, {name: 1})
        if changed is not None and not _rms(changed - output) > scale:
            return False
    return True


def _run(steps: Sequence[dict[str, Any]], draws: dict[str, int]) -> torch.Tensor | None:
    """The output for the inputs of these draws (0 where none is named); None where a step does nothing or overshoots."""
    x = _sample("x", _SHAPES["tensor"], draws.get("x", 0))
    for step in steps:
        operator = OPERATORS[step["op"]]
        extra = (
            _sample(step["input"], _SHAPES[step["layout"]], draws.get(step["input"], 0)) if "input" in step else None
        )
        before, x = x, _function(operator.torch)(x, extra, step.get("value"))
        if torch.equal(before, x) or (operator.kind != "reduction" and not bool(x.abs().max() <= LARGEST)):
            return None
    return x


def _rms(x: torch.Tensor) -> float:
    return float(x.square().mean().sqrt())


@lru_cache(maxsize=64)
def _sample(name: str, shape: tuple[int, ...], draw: int) -> torch.Tensor:
    seed = sum(name.encode()) + 1000 * draw
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@cache
def _function(template: str) -> Callable[..., torch.Tensor]:
    expression = template.format(x="x", b="b", value="value")
    return eval(f"lambda x, b, value: {expression}", {"torch": torch, "F": torch.nn.functional})
