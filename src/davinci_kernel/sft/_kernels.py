"""The procedural teacher's kernels: C++ for generated tasks, at any optimisation `Plan`.

A generated task is a chain of row-wise operators (`Task.metadata["steps"]`). The kernel is one C function over raw
pointers: for each row and column a running value `v` goes through the chain; a reduction or normalisation at the end
works on the row. An unfused plan writes `v` back to memory after every operator.
"""

from __future__ import annotations

import json
import re
from typing import Any

from davinci_kernel.tasks import Task

from ._plan import Plan

# Double-precision C for one operator on the running value v; {value} is the constant, {b} the extra input's element.
_POINTWISE = {
    "mul": "v * {value}",
    "add": "v + {value}",
    "sub": "v - {value}",
    "div": "v / {value}",
    "clamp_min": "v > {value} ? v : {value}",
    "clamp_max": "v < {value} ? v : {value}",
    "relu": "v > 0.0 ? v : 0.0",
    "leaky_relu": "v > 0.0 ? v : v * {value}",
    "sigmoid": "1.0 / (1.0 + exp(-v))",
    "tanh": "tanh(v)",
    "silu": "v / (1.0 + exp(-v))",
    "gelu": "0.5 * v * (1.0 + erf(v * 0.70710678))",
    "softplus": "(v > 0.0 ? v : 0.0) + log1p(exp(-fabs(v)))",
    "abs": "fabs(v)",
    "square": "v * v",
    "neg": "-v",
    "exp_neg_abs": "exp(-fabs(v))",
    "sqrt_abs": "sqrt(fabs(v) + 0.1)",
    "sin": "sin(v)",
    "cos": "cos(v)",
    "erf": "erf(v)",
    "elu": "v > 0.0 ? v : exp(v) - 1.0",
    "hardswish": "v < -3.0 ? 0.0 : v > 3.0 ? v : v * (v + 3.0) / 6.0",
    "add_bias": "v + {b}",
    "mul_weight": "v * {b}",
    "mul_gate": "v * {b}",
    "add_tensor": "v + {b}",
    "mul_tensor": "v * {b}",
}
TRANSCENDENTAL = frozenset(
    {"sigmoid", "tanh", "silu", "gelu", "softplus", "exp_neg_abs", "sin", "cos", "erf", "elu", "softmax", "log_softmax"}
)
"""Operators whose cost is a library function that only -ffast-math lets the compiler vectorise."""

_REDUCTIONS = {
    "row_sum": ("0.0", "s += v;", "s"),
    "row_mean": ("0.0", "s += v;", "s / cols"),
    "row_max": ("-1e30", "s = v > s ? v : s;", "s"),
    "row_min": ("1e30", "s = v < s ? v : s;", "s"),
}
# Normalisations read the row o[] that the chain has written: statistics first, then the value written back.
_NORMALISATIONS = {
    "softmax": (
        ("m", "-1e30", "m = o[c] > m ? o[c] : m;", ""),
        ("s", "0.0", "s += exp(o[c] - m);", ""),
        "exp(o[c] - m) / s",
    ),
    "log_softmax": (
        ("m", "-1e30", "m = o[c] > m ? o[c] : m;", ""),
        ("s", "0.0", "s += exp(o[c] - m);", "s = log(s);"),
        "o[c] - m - s",
    ),
    "layernorm": (
        ("m", "0.0", "m += o[c];", "m = m / cols;"),
        ("s", "0.0", "s += (o[c] - m) * (o[c] - m);", "s = 1.0 / sqrt(s / cols + {eps});"),
        "(o[c] - m) * s",
    ),
    "rmsnorm": (
        ("s", "0.0", "s += o[c] * o[c];", "s = 1.0 / sqrt(s / cols + {eps});"),
        None,
        "o[c] * s",
    ),
}
_LOCAL = re.compile(r"\bfloat ([vsm]) =")
_SINGLE = re.compile(r"(?<![\w.])(\d+\.\d+|1e30)|\b(exp|tanh|fabs|sqrt|erf|log1p|log|sin|cos)\(")


def supports(task: Task) -> bool:
    """Whether the teacher can write this task: a generated chain of known operators."""
    known = {*_POINTWISE, *_REDUCTIONS, *_NORMALISATIONS}
    steps = task.metadata.get("steps") or []
    return bool(steps) and all(step["op"] in known for step in steps)


def write_kernel(task: Task, plan: Plan) -> str:
    """A candidate module for a generated task.

    Raises:
        ValueError: the task is not a generated chain of operators that the teacher knows.
    """
    if not supports(task):
        raise ValueError(f"{task.task_id}: the procedural teacher writes kernels for generated tasks only")
    steps: list[dict[str, Any]] = task.metadata["steps"]
    tail = steps[-1]["op"] if steps[-1]["op"] in _REDUCTIONS | _NORMALISATIONS else None
    extras, chain = _chain(steps[: len(steps) - (tail is not None)])
    reduces = tail in _REDUCTIONS
    buffer = "tmp" if reduces and chain and not plan.fused else "out"
    body = _body(chain, tail, buffer, plan)
    parameters = ["const float* x", *(f"const float* {name}" for name in extras)]
    parameters += ["float* tmp"] if buffer == "tmp" else []
    source = "\n".join(
        [
            "#include <math.h>",
            f'extern "C" void run({", ".join([*parameters, "float* out", "long rows", "long cols"])}) {{',
            *body,
            "}",
        ]
    )
    source = _SINGLE.sub(_to_single, source) if plan.single else _LOCAL.sub(r"double \1 =", source)
    chosen = [flag for flag, on in (("-ffast-math", plan.fast_math), ("-mprefer-vector-width=512", plan.wide)) if on]
    flags = f", {json.dumps(chosen)}" if chosen else ""
    arguments = ["x", *extras, *(["tmp"] if buffer == "tmp" else []), "out", "x.shape[0]", "x.shape[1]"]
    forward = [f"    def forward(self, {', '.join(['x', *extras])}):"]
    forward += ["        tmp = torch.empty_like(x)"] if buffer == "tmp" else []
    forward += [f"        out = {'torch.empty(x.shape[0], 1)' if reduces else 'torch.empty_like(x)'}"]
    forward += [f"        K.run({', '.join(arguments)})", "        return out"]
    head = ["import torch", "import torch.nn as nn", "from davinci_kernel.jit import load_cpp", "", "K = load_cpp(r'''"]
    return "\n".join([*head, source, f"'''{flags})", "", "", "class ModelNew(nn.Module):", *forward, ""])


def _to_single(match: re.Match[str]) -> str:
    return f"{match[1]}f" if match[1] else f"{match[2]}f("


def _chain(steps: list[dict[str, Any]]) -> tuple[list[str], list[str]]:
    """Names of the extra inputs and one C expression per step."""
    extras: list[str] = []
    expressions = []
    for step in steps:
        element = ""
        if name := step.get("input"):
            extras.append(name)
            element = {"row": f"{name}[c]", "column": f"{name}[r]"}.get(step.get("layout", ""), f"{name}[r * cols + c]")
        value = step.get("value", step.get("slope", 0.0))
        expressions.append(_POINTWISE[step["op"]].format(value=_literal(value), b=element))
    return extras, expressions


def _literal(value: float) -> str:
    text = f"{float(value):g}"
    text = text if "." in text or "e" in text else f"{text}.0"
    return f"({text})" if value < 0 else text


def _body(chain: list[str], tail: str | None, buffer: str, plan: Plan) -> list[str]:
    if plan.fused:
        inner = ["    const float* a = x + r * cols;"]
        if tail in _REDUCTIONS:
            inner += _reduce(tail, "a[c]", chain)
        else:
            inner = [f"{inner[0]} float* o = out + r * cols;", *_columns("a[c]", chain, "o[c] = v;")]
            inner += _normalise(tail) if tail else []
        return _rows(inner, plan)
    lines, source = [], "x"
    for expression in chain:
        inner = [f"    const float* a = {source} + r * cols; float* o = {buffer} + r * cols;"]
        lines += _rows([*inner, *_columns("a[c]", [expression], "o[c] = v;")], plan)
        source = buffer
    if tail in _REDUCTIONS:
        lines += _rows([f"    const float* a = {source} + r * cols;", *_reduce(tail, "a[c]", [])], plan)
    elif tail:
        inner = ["    float* o = out + r * cols;"]
        if not chain:
            inner = ["    const float* a = x + r * cols;", *inner, *_columns("a[c]", [], "o[c] = v;")]
        lines += _rows([*inner, *_normalise(tail)], plan)
    return lines


def _rows(inner: list[str], plan: Plan) -> list[str]:
    pragma = ["  #pragma omp parallel for"] if plan.parallel else []
    return [*pragma, "  for (long r = 0; r < rows; r++) {", *inner, "  }"]


def _columns(source: str, chain: list[str], last: str) -> list[str]:
    steps = [f"      v = {expression};" for expression in chain]
    return ["    for (long c = 0; c < cols; c++) {", f"      float v = {source};", *steps, f"      {last}", "    }"]


def _reduce(tail: str | None, source: str, chain: list[str]) -> list[str]:
    start, accumulate, result = _REDUCTIONS[str(tail)]
    return [f"    float s = {start};", *_columns(source, chain, accumulate), f"    out[r] = {result};"]


def _normalise(tail: str) -> list[str]:
    first, second, result = _NORMALISATIONS[tail]
    lines = []
    for name, start, accumulate, finish in filter(None, (first, second)):
        lines += [
            f"    float {name} = {start};",
            "    for (long c = 0; c < cols; c++) {",
            f"      {accumulate}",
            "    }",
        ]
        lines += [f"    {finish.format(eps='0.00001')}"] if finish else []
    return [*lines, "    for (long c = 0; c < cols; c++) {", f"      o[c] = {result};", "    }"]
