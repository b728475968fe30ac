"""Where a worker's models run: buffers, copies and the timed call on the CPU or on one CUDA device.

The timed call on CUDA: a buffer larger than the L2 cache is overwritten, the device is given a pause that hides the launches
(device time is what counts), an event is recorded on torch's stream, forward runs, a second event is recorded. What the
device still computes after the second event is measured too: work on streams that the current one does not wait for shows
there. The functions used are bound here, before any candidate is imported.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter_ns
from typing import Any, Literal

import torch

from ._tensors import Region

DeviceName = Literal["cpu", "cuda"]
POISON_BLOCKS = 4
_FLUSH_BYTES = 256 << 20
"""More than any device's L2 cache."""
_HEAD_START_CYCLES = 1_000_000
"""The device idles for some 0.5 ms before the first event, so that launches up to then are hidden."""


@dataclass
class Timed:
    """One forward: its output, its time in ns, and ns that the device went on after the current stream was done."""

    output: Any
    ns: int
    late_ns: int = 0


class CpuDevice:
    """Host memory, monotonic clock."""

    name: DeviceName = "cpu"

    def __init__(self, now: Callable[[], int] = perf_counter_ns):
        self._now = now

    def place(self, model: Any) -> Any:
        return model

    def buffer_like(self, view: torch.Tensor) -> torch.Tensor:
        """An uninitialised tensor of the view's shape, strides and dtype."""
        return torch.empty_strided(view.shape, view.stride(), dtype=view.dtype)

    def write(self, buffer: torch.Tensor, first: int, region: Region, offset: int, nbytes: int) -> None:
        """Copy bytes of a region into a dense buffer, from its byte ``first`` on."""
        ctypes.memmove(buffer.data_ptr() + first, region.address + offset, nbytes)

    def poison(self, blocks: list[int]) -> None:
        """Fill and free blocks of these sizes, so that memory handed out next holds NaN rather than an old result."""
        held = []
        for nbytes in blocks:
            for _ in range(POISON_BLOCKS):
                block = torch.empty(nbytes, dtype=torch.uint8)
                ctypes.memset(block.data_ptr(), 0xFF, nbytes)
                held.append(block)
        held.clear()

    def timed(self, call: Callable[..., Any], inputs: Any) -> Timed:
        start = self._now()
        output = call(*inputs)
        return Timed(output, self._now() - start)

    def probe(self) -> None:
        """Raise if the device does not compute."""


class CudaDevice(CpuDevice):
    """The current CUDA device: one context per worker process; outputs of a stream are what its next operator would read."""

    name: DeviceName = "cuda"

    def __init__(self, now: Callable[[], int] = perf_counter_ns):
        super().__init__(now)
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = False
        # torch would ask NVML, which does not survive a fork.
        torch.cuda._cached_device_count = torch._C._cuda_getDeviceCount()
        torch.cuda.init()
        self._event: Any = torch._C._CudaEventBase
        self._wait_for_device: Any = torch._C._cuda_synchronize
        self._stream: Any = torch.cuda.current_stream()
        self._set_stream = torch.cuda.set_stream
        self._sleep: Any = torch._C._cuda_sleep
        self._flush = torch.empty(_FLUSH_BYTES // 4, dtype=torch.int32, device="cuda")

    def place(self, model: Any) -> Any:
        return model.to("cuda") if isinstance(model, torch.nn.Module) else model

    def buffer_like(self, view: torch.Tensor) -> torch.Tensor:
        return torch.empty_strided(view.shape, view.stride(), dtype=view.dtype, device="cuda")

    def write(self, buffer: torch.Tensor, first: int, region: Region, offset: int, nbytes: int) -> None:
        if nbytes:
            flat = buffer.as_strided((buffer.numel(),), (1,)).view(torch.uint8)
            flat[first : first + nbytes].copy_(region.bytes_at(offset, nbytes))

    def poison(self, blocks: list[int]) -> None:
        held = [
            torch.empty(nbytes, dtype=torch.uint8, device="cuda").fill_(0xFF)
            for nbytes in blocks
            for _ in range(POISON_BLOCKS)
        ]
        held.clear()

    def timed(self, call: Callable[..., Any], inputs: Any) -> Timed:
        self._set_stream(self._stream)
        before, after = self._event(enable_timing=True), self._event(enable_timing=True)
        self._wait_for_device()
        self._flush.zero_()
        self._sleep(_HEAD_START_CYCLES)
        before.record(self._stream)
        output = call(*inputs)
        self._set_stream(self._stream)
        after.record(self._stream)
        after.synchronize()
        done = self._now()
        self._wait_for_device()
        return Timed(output, int(before.elapsed_time(after) * 1e6), self._now() - done)

    def probe(self) -> None:
        if int(torch.arange(8, device="cuda").sum().item()) != 28:
            raise RuntimeError("the device computes wrong sums")


def make_device(name: DeviceName) -> CpuDevice:
    return CudaDevice() if name == "cuda" else CpuDevice()
