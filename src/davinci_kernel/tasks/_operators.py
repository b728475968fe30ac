"""The operators of generated tasks: one table, used by the generator and by whoever writes kernels for its tasks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["elementwise", "scalar", "broadcast", "binary", "reduction", "normalisation"]
Layout = Literal["row", "column", "tensor"]


@dataclass(frozen=True)
class Operator:
    """One operator on a running value ``x`` of shape (rows, cols).

    Attributes:
        kind: `elementwise` and `scalar` (with a constant) act on each element; `broadcast` and `binary` take a further
            input; `reduction` and `normalisation` work along the last dimension and end a chain.
        torch: PyTorch expression over ``{x}``, ``{value}`` (scalar) and ``{b}`` (the further input's name).
        values: smallest and largest constant, on a grid of 0.05.
        layout: shape of the further input: `row` (cols,), `column` (rows, 1), `tensor` (rows, cols).
    """

    name: str
    kind: Kind
    torch: str
    values: tuple[float, float] = (0.0, 0.0)
    layout: Layout | None = None


EPS = 1e-5
"""Epsilon of layernorm and rmsnorm."""

_TABLE = (
    Operator("mul", "scalar", "{x} * {value}", (0.5, 2.0)),
    Operator("add", "scalar", "{x} + {value}", (0.1, 1.5)),
    Operator("sub", "scalar", "{x} - {value}", (0.1, 1.5)),
    Operator("div", "scalar", "{x} / {value}", (0.6, 2.0)),
    Operator("clamp_min", "scalar", "torch.clamp({x}, min={value})", (-1.0, 0.5)),
    Operator("clamp_max", "scalar", "torch.clamp({x}, max={value})", (0.5, 2.0)),
    Operator("relu", "elementwise", "torch.relu({x})"),
    Operator("leaky_relu", "scalar", "F.leaky_relu({x}, {value})", (0.05, 0.3)),
    Operator("sigmoid", "elementwise", "torch.sigmoid({x})"),
    Operator("tanh", "elementwise", "torch.tanh({x})"),
    Operator("silu", "elementwise", "F.silu({x})"),
    Operator("gelu", "elementwise", "F.gelu({x})"),
    Operator("softplus", "elementwise", "F.softplus({x})"),
    Operator("abs", "elementwise", "torch.abs({x})"),
    Operator("square", "elementwise", "torch.square({x})"),
    Operator("neg", "elementwise", "-{x}"),
    Operator("exp_neg_abs", "elementwise", "torch.exp(-torch.abs({x}))"),
    Operator("sqrt_abs", "elementwise", "torch.sqrt(torch.abs({x}) + 0.1)"),
    Operator("sin", "elementwise", "torch.sin({x})"),
    Operator("cos", "elementwise", "torch.cos({x})"),
    Operator("erf", "elementwise", "torch.erf({x})"),
    Operator("elu", "elementwise", "F.elu({x})"),
    Operator("hardswish", "elementwise", "F.hardswish({x})"),
    Operator("add_bias", "broadcast", "{x} + {b}", layout="row"),
    Operator("mul_weight", "broadcast", "{x} * {b}", layout="row"),
    Operator("mul_gate", "broadcast", "{x} * {b}", layout="column"),
    Operator("add_tensor", "binary", "{x} + {b}", layout="tensor"),
    Operator("mul_tensor", "binary", "{x} * {b}", layout="tensor"),
    Operator("row_sum", "reduction", "torch.sum({x}, dim=-1, keepdim=True)"),
    Operator("row_mean", "reduction", "torch.mean({x}, dim=-1, keepdim=True)"),
    Operator("row_max", "reduction", "torch.amax({x}, dim=-1, keepdim=True)"),
    Operator("row_min", "reduction", "torch.amin({x}, dim=-1, keepdim=True)"),
    Operator("softmax", "normalisation", "torch.softmax({x}, dim=-1)"),
    Operator("log_softmax", "normalisation", "torch.log_softmax({x}, dim=-1)"),
    Operator("layernorm", "normalisation", f"F.layer_norm({{x}}, {{x}}.shape[-1:], eps={EPS})"),
    Operator("rmsnorm", "normalisation", f"F.rms_norm({{x}}, {{x}}.shape[-1:], eps={EPS})"),
)
OPERATORS: dict[str, Operator] = {operator.name: operator for operator in _TABLE}
TAILS = tuple(o.name for o in _TABLE if o.kind in ("reduction", "normalisation"))
