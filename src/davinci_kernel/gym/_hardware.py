"""The machine and versions behind a measurement, for provenance."""

from __future__ import annotations

import os
import platform
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


def describe_hardware(threads: int) -> dict[str, Any]:
    """What two records must share to be comparable."""
    return {
        "device": "cpu",
        "cpu": cpu_model(),
        "cores": os.cpu_count(),
        "threads": threads,
        "torch": torch.__version__,
        "davinci_kernel": __version__,
        "python": platform.python_version(),
    }
