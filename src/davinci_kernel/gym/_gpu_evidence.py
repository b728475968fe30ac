"""Evidence on CUDA: which kernels the device ran and for how long, and hooks on every way by which a candidate launches its own.

Own kernels are identified by exact name: Triton functions defined in the candidate's file (a hook on compiled kernels sees
each launch), kernels of `load_cuda`, and ``__global__`` functions in sources that the candidate gives to `load_inline` or to CuPy.
Times are the device's, from CUPTI through torch's profiler; kernels inside a replayed graph are seen there too.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter_ns
from typing import Any

import torch

from davinci_kernel.gym import _triton

_GLOBAL_NAME = re.compile(r"__global__[\w:<>,\s*&]*?\b([A-Za-z_]\w*)\s*\(")
_LAUNCH_BOUNDS = re.compile(r"__launch_bounds__\s*\([^()]*\)")
_LIBRARIES = ("at", "c10", "cub", "thrust", "cutlass", "cudnn", "torch")
"""Namespaces of kernels that are nobody's own."""
_PAUSE_CYCLES = 40_000_000
"""Some 20 ms: long enough to queue a forward's launches behind it, also those that CUPTI delays."""
_MARKER_ELEMENTS = 64
_CLOCK_STEP_US = 1.0
_CANDIDATE_FILE = "candidate.py"


def declared_kernels(source: str) -> set[str]:
    """Names of the ``__global__`` functions of a CUDA C++ source."""
    return set(_GLOBAL_NAME.findall(_LAUNCH_BOUNDS.sub(" ", source)))


def kernel_identity(name: str) -> str:
    """The qualified name of a device function: no return type, template arguments, parameters or anonymous namespaces.

    A library's kernel keeps its namespace; anything else is reduced to its last component.
    """
    text = name.replace("(anonymous namespace)::", "").removeprefix("void ").strip()
    text = re.split(r"[<(]", text, maxsplit=1)[0].strip()
    root, _, _ = text.partition("::")
    return text if root in _LIBRARIES else text.rpartition("::")[2]


@contextmanager
def device_times(found: list[tuple[str, float]], unordered: list[str]) -> Iterator[None]:
    """Append [name, seconds] of everything that the device ran inside the block.

    The block's work is queued behind a pause on torch's stream and followed by a marker on it. Work that is still going when
    the marker starts is on a stream that torch's does not wait for: its names go to ``unordered``.
    """
    stream, pause = torch.cuda.current_stream(), torch._C._cuda_sleep
    marker = torch.empty(_MARKER_ELEMENTS, dtype=torch.complex128, device="cuda")
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profiler:
        pause(_PAUSE_CYCLES)
        yield
        torch.cuda.set_stream(stream)
        marker.fill_(1j)
        torch._C._cuda_synchronize()
    events = [e for e in profiler.events() or [] if e.device_type == torch.autograd.DeviceType.CUDA]
    events = [e for e in events if not e.name.startswith(("Context Sync", "Stream Sync", "Event Sync"))]
    events.sort(key=lambda e: e.time_range.start)
    fills = [index for index, e in enumerate(events) if "complex<double>" in e.name]
    last = fills[-1] if fills else len(events)
    start = events[last].time_range.start if fills else float("inf")
    for index, event in enumerate(events):
        if index == last or "spin_kernel" in event.name:
            continue
        found.append((event.name, event.time_range.elapsed_us() / 1e6))
        if event.time_range.end > start + _CLOCK_STEP_US:
            unordered.append(event.name[:80])


class LaunchHooks:
    """Launches of own kernels by Triton and CuPy: recorded, or skipped in ghost mode."""

    def __init__(self) -> None:
        self.ghost = False
        self.names: set[str] = set()
        self.launches: list[tuple[str, float]] = []
        self.described: list[_triton.Launch] = []

    def install(self, code: str, interpret: bool = False) -> None:
        """Hook what this candidate's source mentions; before it is imported."""
        if interpret:
            _triton.interpret(self.record, self.described, lambda function: _stands_in_candidate(function))
        elif "triton" in code:
            self._hook_triton()
        if "cupy" in code:
            self._hook_cupy()
        if "CUDAGraph" in code or "graph" in code:
            self._hook_graphs()

    def record(self, name: str, launch: Callable[[], Any]) -> Any:
        """Launch unless in ghost mode."""
        self.names.add(name)
        if self.ghost:
            return None
        start = perf_counter_ns()
        result = launch()
        self.launches.append((name, (perf_counter_ns() - start) / 1e9))
        return result

    def _hook_triton(self) -> None:
        try:
            from triton.compiler.compiler import CompiledKernel
        except ImportError:
            return
        original: Any = CompiledKernel.run
        hooks = self

        def run(kernel: Any) -> Any:
            launcher = original.fget(kernel)
            if not _defined_by_candidate(kernel):
                return launcher
            return lambda *args, **kwargs: hooks.record(kernel.name, lambda: launcher(*args, **kwargs))

        CompiledKernel.run = property(run)

    def _hook_cupy(self) -> None:
        try:
            import cupy
        except ImportError:
            return
        hooks = self

        class Kernel:
            def __init__(self, kernel: Any, name: str):
                self._kernel, self._name = kernel, name

            def __call__(self, *args: Any, **kwargs: Any) -> Any:
                return hooks.record(self._name, lambda: self._kernel(*args, **kwargs))

            def __getattr__(self, attribute: str) -> Any:
                return getattr(self._kernel, attribute)

        raw_module, raw_kernel = cupy.RawModule, cupy.RawKernel

        class RawModule:
            def __init__(self, *args: Any, **kwargs: Any):
                self._module = raw_module(*args, **kwargs)
                hooks.names |= declared_kernels(kwargs.get("code") or (args[0] if args else "") or "")

            def get_function(self, name: str) -> Kernel:
                return Kernel(self._module.get_function(name), name)

            def __getattr__(self, attribute: str) -> Any:
                return getattr(self._module, attribute)

        def make_raw_kernel(code: str, name: str, *args: Any, **kwargs: Any) -> Kernel:
            return Kernel(raw_kernel(code, name, *args, **kwargs), name)

        cupy.RawModule, cupy.RawKernel = RawModule, make_raw_kernel

    def _hook_graphs(self) -> None:
        """A replay launches captured kernels without their hooks: in ghost mode it launches nothing."""
        original, hooks = torch.cuda.CUDAGraph.replay, self

        def replay(graph: Any) -> None:
            if not hooks.ghost:
                original(graph)

        replaced: Any = torch.cuda.CUDAGraph
        replaced.replay = replay


def _defined_by_candidate(kernel: Any) -> bool:
    """Whether a compiled Triton kernel's function stands in the candidate's file (Inductor's, for one, do not)."""
    return _stands_in_candidate(getattr(getattr(getattr(kernel, "src", None), "fn", None), "fn", None))


def _stands_in_candidate(function: Any) -> bool:
    code = getattr(function, "__code__", None)
    return os.path.basename(getattr(code, "co_filename", "")) == _CANDIDATE_FILE
