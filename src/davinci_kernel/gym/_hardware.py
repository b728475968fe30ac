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


@cache
def describe_gpu() -> dict[str, Any]:
    """Name, driver and current clocks of the first CUDA device, from nvidia-smi; empty without it."""
    fields = ("name", "driver_version", "clocks.sm", "clocks.mem", "power.limit")
    query = ["nvidia-smi", "-i", "0", f"--query-gpu={','.join(fields)}", "--format=csv,noheader"]
    try:
        shown = subprocess.run(query, capture_output=True, text=True, timeout=20, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return {}
    return dict(zip(fields, (part.strip() for part in shown.split(",")), strict=False))


def describe_hardware(threads: int, device: str = "cpu") -> dict[str, Any]:
    """What two records must share to be comparable."""
    gpu = {"gpu": describe_gpu(), "cuda": torch.version.cuda} if device == "cuda" else {}
    return gpu | {
        "device": device,
        "cpu": cpu_model(),
        "cores": os.cpu_count(),
        "threads": threads,
        "torch": torch.__version__,
        "davinci_kernel": __version__,
        "python": platform.python_version(),
    }
