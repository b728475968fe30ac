"""The machine and versions behind a measurement, for provenance."""

from __future__ import annotations

import os
import platform
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import torch

from davinci_kernel import __version__


@cache
def usable_cores() -> int:
    """Cores that this process may use, as of the first call: OpenMP later binds the asking thread to one of them."""
    return len(os.sched_getaffinity(0))


@cache
def cpu_model() -> str:
    """The processor's name as the system gives it."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


@cache
def has_cuda() -> bool:
    """Whether there is a CUDA device; asks NVML, so that processes forked later can still start CUDA."""
    os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")
    return torch.cuda.is_available()


def cuda_devices() -> list[str]:
    """The CUDA devices that this process may use, by the names that ``CUDA_VISIBLE_DEVICES`` has for them."""
    if not has_cuda():
        return []
    count = torch.cuda.device_count()
    named = [name.strip() for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name.strip()]
    return named[:count] or [str(index) for index in range(count)]


@cache
def describe_gpu(device: str = "0") -> dict[str, Any]:
    """Name, driver, memory and current clocks of a CUDA device, from nvidia-smi; empty without it."""
    fields = ("name", "driver_version", "memory.total", "clocks.sm", "clocks.mem", "power.limit")
    query = ["nvidia-smi", "-i", device, f"--query-gpu={','.join(fields)}", "--format=csv,noheader"]
    try:
        shown = subprocess.run(query, capture_output=True, text=True, timeout=20, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return {}
    return dict(zip(fields, (part.strip() for part in shown.split(",")), strict=False))


def gpu_memory_gib(device: str) -> float:
    """Memory of a CUDA device in GiB; 16 where nvidia-smi does not say."""
    size = str(describe_gpu(device).get("memory.total", "")).split(" ")
    return float(size[0]) / 1024 if size[0].isdigit() else 16.0


def describe_hardware(threads: int, device: str = "cpu") -> dict[str, Any]:
    """What two records must share to be comparable."""
    gpu = (
        {"gpu": describe_gpu(os.environ.get("CUDA_VISIBLE_DEVICES", "0")), "cuda": torch.version.cuda}
        if device == "cuda"
        else {}
    )
    return gpu | {
        "device": device,
        "cpu": cpu_model(),
        "cores": os.cpu_count(),
        "threads": threads,
        "torch": torch.__version__,
        "davinci_kernel": __version__,
        "python": platform.python_version(),
    }
