"""What a candidate's forward really ran: its own kernels and torch's operators, each with its time.

Own kernels are those of `davinci_kernel.jit` and functions of extensions built by `torch.utils.cpp_extension`. In ghost
mode they become no-ops: an output that stays correct was not computed by them.
"""

from __future__ import annotations

import builtins
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter_ns
from types import ModuleType
from typing import Any

import torch
from torch.utils import cpp_extension
from torch.utils._python_dispatch import TorchDispatchMode

from davinci_kernel.gym._device import CpuDevice
from davinci_kernel.gym._gpu_evidence import LaunchHooks, declared_kernels, device_times, kernel_identity
from davinci_kernel.jit import _evidence as jit_evidence

_INTERPRETERS_OWN = frozenset(["aten::set_", "aten::copy_", "aten::_to_copy"])
_FREE_OPERATORS = frozenset(
    [
        "empty",
        "empty_like",
        "empty_strided",
        "new_empty",
        "new_empty_strided",
        "view",
        "_unsafe_view",
        "reshape",
        "_reshape_alias",
        "as_strided",
        "expand",
        "permute",
        "transpose",
        "t",
        "squeeze",
        "unsqueeze",
        "slice",
        "select",
        "split",
        "split_with_sizes",
        "unbind",
        "narrow",
        "detach",
        "alias",
        "lift_fresh",
        "flatten",
        "unflatten",
        "movedim",
        "view_as",
        "diagonal",
        "unfold",
        "resize_",
        "set_",
        "is_same_size",
        "_local_scalar_dense",
    ]
)
"""Allocation, views and metadata: no work on the device."""

_TRUSTED_FUNCTIONS: tuple[tuple[Any, str], ...] = (
    (time, "time"),
    (time, "perf_counter"),
    (time, "perf_counter_ns"),
    (time, "monotonic"),
    (torch, "allclose"),
    (torch, "equal"),
    (torch, "no_grad"),
    (torch, "isfinite"),
    (torch.Tensor, "data_ptr"),
    (torch.Tensor, "copy_"),
    (torch.Tensor, "clone"),
    (torch.Tensor, "untyped_storage"),
    (torch.nn.Module, "__call__"),
    (torch.cuda, "synchronize"),
    (torch.cuda, "Event"),
    (torch.cuda.Event, "record"),
    (torch.cuda.Event, "elapsed_time"),
    (torch.cuda.Event, "synchronize"),
    (torch.cuda, "current_stream"),
    (torch.testing, "assert_close"),
    (builtins, "isinstance"),
    (builtins, "type"),
)
_ORIGINALS = tuple(getattr(owner, name) for owner, name in _TRUSTED_FUNCTIONS)


def patched_functions() -> list[str]:
    """Names of timing, comparison and runtime functions that are no longer the originals."""
    return [
        f"{getattr(owner, '__name__', owner)}.{name}"
        for (owner, name), original in zip(_TRUSTED_FUNCTIONS, _ORIGINALS, strict=True)
        if getattr(owner, name, None) is not original
    ]


@dataclass
class Observed:
    """One forward: [name, seconds] of each own kernel launch and of each torch operator that does work."""

    kernels: list[tuple[str, float]] = field(default_factory=list)
    operators: list[tuple[str, float]] = field(default_factory=list)
    unordered: list[str] = field(default_factory=list)
    """Kernels that torch's stream does not wait for (CUDA)."""


class _OperatorTimes(TorchDispatchMode):
    def __init__(self, operators: list[tuple[str, float]]):
        super().__init__()
        self.operators = operators

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        start = perf_counter_ns()
        result = func(*args, **(kwargs or {}))
        seconds = (perf_counter_ns() - start) / 1e9
        namespace, _, name = func._schema.name.partition("::")
        if namespace != "aten" or name not in _FREE_OPERATORS:
            self.operators.append((f"{namespace}::{name}", seconds))
        return result


def warm_up() -> None:
    """Have torch load what its dispatch modes import at first use (half a second), serially and before any fork."""
    torch.manual_seed(0)
    with _OperatorTimes([]), torch.no_grad():
        torch.empty(1).view(1).clone()


class Evidence:
    """Records and ghosts a candidate's kernels; wraps extension building from construction on."""

    def __init__(self, device: CpuDevice | None = None) -> None:
        self.on_gpu = device is not None and device.name == "cuda"
        self.ghost = False
        self.hooks = LaunchHooks()
        self.interpreted = False
        self.extension_calls: list[tuple[str, float]] = []
        self.extension_kernels: set[str] = set()
        for name in ("load_inline", "load"):
            setattr(cpp_extension, name, self._recorded_builder(getattr(cpp_extension, name)))

    def before_import(self, code: str, interpret: bool = False) -> None:
        """Hook the launchers that a source mentions; ``interpret``: Triton's kernels run on the CPU."""
        self.interpreted = interpret
        self.hooks.install(code, interpret)

    def set_ghost(self, on: bool) -> None:
        self.ghost = self.hooks.ghost = on
        jit_evidence.set_ghost(on)

    @contextmanager
    def observe(self) -> Iterator[Observed]:
        """Collect what runs inside the block."""
        observed = Observed()
        self.extension_kernels |= {launch.name for launch in jit_evidence.launches()}  # a graph replays them unseen
        jit_evidence.reset()
        self.extension_calls.clear()
        self.hooks.launches.clear()
        ran: list[tuple[str, float]] = []
        if self.on_gpu:
            with device_times(ran, observed.unordered):
                yield observed
        else:
            with _OperatorTimes(observed.operators):
                yield observed
            if self.interpreted:  # the interpreter's own operators are the kernels' work
                observed.operators = [pair for pair in observed.operators if pair[0] not in _INTERPRETERS_OWN]
        launched = [(launch.name, launch.seconds) for launch in jit_evidence.launches()]
        launched += [*self.extension_calls, *self.hooks.launches]
        if not ran:
            observed.kernels += launched
            return
        own = {name for name, _ in launched} | self.hooks.names | self.extension_kernels
        for name, seconds in ran:
            (observed.kernels if kernel_identity(name) in own else observed.operators).append((name[:80], seconds))

    def _recorded_builder(self, build: Callable[..., Any]) -> Callable[..., Any]:
        def recorded(*args: Any, **kwargs: Any) -> Any:
            for sources in (*args, *kwargs.values()):
                for source in [sources] if isinstance(sources, str) else sources if isinstance(sources, list) else []:
                    self.extension_kernels |= declared_kernels(source) if isinstance(source, str) else set()
            module = build(*args, **kwargs)
            return self._recorded_module(module) if isinstance(module, ModuleType) else module

        return recorded

    def _recorded_module(self, module: ModuleType) -> ModuleType:
        proxy = ModuleType(module.__name__)
        for name, value in vars(module).items():
            plain = name.startswith("__") or isinstance(value, type) or not callable(value)
            setattr(proxy, name, value if plain else self._recorded_function(name, value))
        return proxy

    def _recorded_function(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def recorded(*args: Any, **kwargs: Any) -> Any:
            tensors = [item for item in (*args, *kwargs.values()) if isinstance(item, torch.Tensor)]
            kept = [tensor.clone() for tensor in tensors] if self.ghost else []
            start = perf_counter_ns()
            with _outside_modes():
                result = function(*args, **kwargs)
            self.extension_calls.append((name, (perf_counter_ns() - start) / 1e9))
            for tensor, content in zip(tensors, kept, strict=False):
                tensor.copy_(content)
            return _emptied(result, tensors) if self.ghost else result

        return recorded


@contextmanager
def _outside_modes() -> Iterator[None]:
    """Operators that an extension calls in C++ count as the extension's own time."""
    from torch.utils._python_dispatch import _disable_current_modes

    with _disable_current_modes():
        yield


def _emptied(value: Any, inputs: list[torch.Tensor]) -> Any:
    """A ghost's result: fresh NaN-filled tensors instead of what was computed; arguments handed back stay themselves."""
    if isinstance(value, torch.Tensor):
        return value if any(value is tensor for tensor in inputs) else _poison_like(value)
    if isinstance(value, (list, tuple)):
        return type(value)(_emptied(item, inputs) for item in value)
    return value


def _poison_like(tensor: torch.Tensor) -> torch.Tensor:
    fill = float("nan") if tensor.is_floating_point() or tensor.is_complex() else 1
    return torch.full_like(tensor, fill)
