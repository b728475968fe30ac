"""Triton without a GPU: the interpreter for correctness, and ahead-of-time compiling for the compile verdict."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch

TARGET = ("cuda", 90, 32)
"""Backend, compute capability and warp size compiled for where there is no device."""
_TYPES = {
    torch.float64: "fp64",
    torch.float32: "fp32",
    torch.float16: "fp16",
    torch.bfloat16: "bf16",
    torch.int64: "i64",
    torch.int32: "i32",
    torch.int16: "i16",
    torch.int8: "i8",
    torch.uint8: "u8",
    torch.bool: "i1",
}
_OPTIONS = ("num_warps", "num_stages", "num_ctas")

Launch = dict[str, Any]
"""``{"kernel", "signature": {argument: type}, "constants": {argument: value}, "options": {...}}``; JSON-able."""


def interpret(
    record: Callable[[str, Callable[[], Any]], Any], launches: list[Launch], is_own: Callable[[Any], bool]
) -> None:
    """Have Triton interpret what is imported from here on; each own launch goes through ``record`` and is described.

    Autotuners take their first configuration: there is nothing to time.
    """
    os.environ["TRITON_INTERPRET"] = "1"
    # torch has imported Triton already. Its library functions (tl.zeros, tl.sum) are interpreted only if they are defined
    # with the switch on, so all but the compiled part is imported again.
    for name in [name for name in sys.modules if name.split(".")[0] == "triton" and not name.startswith("triton._C")]:
        del sys.modules[name]
    from triton.runtime.autotuner import Autotuner
    from triton.runtime.interpreter import InterpretedFunction

    launch, tune = InterpretedFunction.run, Autotuner.run

    def run(function: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        def launched() -> Any:
            return launch(function, *args, grid=grid, warmup=warmup, **kwargs)

        if warmup or not is_own(function.fn):
            return launched()
        described = _describe(function, args, kwargs)
        if described not in launches:
            launches.append(described)
        return record(function.fn.__name__, launched)

    def first(tuner: Any, *args: Any, **kwargs: Any) -> Any:
        tuner.configs = tuner.configs[:1]
        return tune(tuner, *args, **kwargs)

    InterpretedFunction.run = run
    Autotuner.run = first


def compile_ahead(module: ModuleType, launches: list[Launch]) -> list[dict[str, Any]]:
    """Compile each launch's kernel for `TARGET`; replies its shared memory and code size in bytes.

    Raises:
        Exception: Triton's compilation error, and whatever else its compiler raises for the kernel.
    """
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    compiled = []
    for launch in launches:
        function = getattr(module, launch["kernel"], None)
        while function is not None and not isinstance(function, triton.JITFunction):
            function = getattr(function, "fn", None)  # under an autotuner or heuristics
        if function is None:
            continue  # defined inside a function: not to be found by name
        source = ASTSource(function, launch["signature"], launch["constants"])
        kernel = triton.compile(source, target=GPUTarget(*TARGET), options=launch["options"])
        compiled.append(
            {"kernel": launch["kernel"], "shared": kernel.metadata.shared, "cubin_bytes": len(kernel.asm["cubin"])}
        )
    return compiled


def _describe(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Launch:
    values = dict(zip(function.arg_names, args, strict=False)) | {
        k: v for k, v in kwargs.items() if k in function.arg_names
    }
    marked = getattr(function.fn, "__annotations__", {})
    signature, constants = {}, {}
    for name in function.arg_names:
        value = values.get(name)
        constant = "constexpr" in str(marked.get(name, "")) or value is None
        signature[name] = "constexpr" if constant else _type_of(value)
        if constant:
            constants[name] = value if isinstance(value, (bool, int, float, str)) or value is None else str(value)
    options = {name: kwargs[name] for name in _OPTIONS if isinstance(kwargs.get(name), int)}
    return {"kernel": function.fn.__name__, "signature": signature, "constants": constants, "options": options}


def _type_of(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return "*" + _TYPES[value.dtype]
    if isinstance(value, bool):
        return "i1"
    if isinstance(value, int):
        return "i32" if -(2**31) <= value < 2**31 else "i64"
    return "fp32"
