"""What keeps a worker in its place: environment, limits, scratch directory, Landlock where the kernel has it."""

from __future__ import annotations

import os
import resource
from pathlib import Path

_KEPT_ENVIRONMENT = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "PYTHONPATH", "VIRTUAL_ENV", "CXX", "CC")
_KEEP_PAGES = str(1 << 40)
_SPIN_COUNT = "4000"
_MAX_FILE_BYTES = 2 << 30
_MAX_PROCESSES = 4096


def clean_environment(scratch: str, threads: int) -> dict[str, str]:
    """The fork server's environment: nothing of the caller's but paths and locale, and quiet timing for both sides.

    The allocator keeps its pages (page faults on temporaries otherwise dominate short operators), threads are bound to
    cores, and idle OpenMP threads stop spinning after some 0.1 ms, so that one side never runs into the other's time.
    """
    kept = {name: os.environ[name] for name in _KEPT_ENVIRONMENT if name in os.environ}
    return kept | {
        "HOME": scratch,
        "TMPDIR": scratch,
        "MALLOC_TRIM_THRESHOLD_": _KEEP_PAGES,
        "MALLOC_MMAP_THRESHOLD_": _KEEP_PAGES,
        "MALLOC_TOP_PAD_": str(64 << 20),
        "OMP_PROC_BIND": "true",
        "OMP_NUM_THREADS": str(threads),
        "GOMP_SPINCOUNT": _SPIN_COUNT,
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def confine(role: str, scratch: str, memory_bytes: int) -> None:
    """Limit the calling worker process for good; judge and reference only get their directory.

    Args:
        role: ``candidate``, ``reference`` or ``judge``.
        scratch: directory that becomes current, home and temporary directory.
        memory_bytes: address space that a candidate may take beyond what it has now.
    """
    os.chdir(scratch)
    os.environ.update(HOME=scratch, TMPDIR=scratch, XDG_CACHE_HOME=scratch)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    if role != "candidate":
        return
    os.dup2(null, 1)
    os.dup2(null, 2)
    os.close(null)
    _limit(resource.RLIMIT_AS, _address_space() + memory_bytes)
    _limit(resource.RLIMIT_FSIZE, _MAX_FILE_BYTES)
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_NPROC, _MAX_PROCESSES)


def _limit(kind: int, value: int) -> None:
    _, hard = resource.getrlimit(kind)
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(kind, (value, value))


def _address_space() -> int:
    """Bytes of address space in use."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
