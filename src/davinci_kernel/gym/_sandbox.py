"""What keeps a worker in its place: environment, limits, scratch directory, Landlock where the kernel has it."""

from __future__ import annotations

import contextlib
import ctypes
import glob
import os
import resource
import sys
import tempfile
from pathlib import Path

from ._landlock import landlock_abi, restrict
from ._users import become, own_users

_KEPT_ENVIRONMENT = (
    "PATH",
    "LANG",
    "LC_ALL",
    "LD_LIBRARY_PATH",
    "PYTHONPATH",
    "VIRTUAL_ENV",
    "CXX",
    "CC",
    "CUDA_HOME",
    "CUDA_PATH",
)
_KEEP_PAGES = str(1 << 40)
_SPIN_COUNT = "4000"
_MAX_FILE_BYTES = 2 << 30
_SYSTEM_PATHS = (
    "/usr",
    "/lib",
    "/lib64",
    "/lib32",
    "/bin",
    "/sbin",
    "/etc",
    "/opt",
    "/proc",
    "/sys",
    "/dev",
    "/nix",
    "/snap",
)
_WRITABLE_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/urandom", "/dev/random")
_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000
_MAX_PROCESSES = 4096
"""Of the user that runs the gym, whose other processes count too."""
_OWN_PROCESSES = 512
"""Of a candidate that is a user of its own."""


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
        "PYTORCH_NVML_BASED_CUDA_CHECK": "1",  # looking for a device otherwise keeps forked processes from using it
    }


def confine(role: str, scratch: str, memory_bytes: int, cuda: bool = False, user: int = 0) -> None:
    """Limit the calling worker process for good; judge and reference only get their directory.

    Args:
        role: ``candidate``, ``reference`` or ``judge``.
        scratch: directory that becomes current, home and temporary directory.
        memory_bytes: address space that a candidate may take beyond what it has now; not limited with ``cuda``, whose
            driver reserves more address space than any machine has memory.
        cuda: it may use the CUDA devices' files.
        user: the user that a candidate becomes; 0: it stays who it is.
    """
    os.chdir(scratch)
    os.environ.update(HOME=scratch, TMPDIR=scratch, XDG_CACHE_HOME=scratch)
    os.environ.update(TRITON_CACHE_DIR=f"{scratch}/triton", TORCHINDUCTOR_CACHE_DIR=f"{scratch}/inductor")
    tempfile.tempdir = None  # as found out by the fork server
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    if role != "candidate":
        return
    os.dup2(null, 1)
    os.dup2(null, 2)
    os.close(null)
    if not cuda:
        _limit(resource.RLIMIT_AS, _address_space() + memory_bytes)
    _limit(resource.RLIMIT_FSIZE, _MAX_FILE_BYTES)
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_NPROC, max(_OWN_PROCESSES, 16 * (os.cpu_count() or 1)) if user else _MAX_PROCESSES)
    # CUDA's driver names its threads in /proc/self, and does not start where it cannot.
    devices = [*_WRITABLE_DEVICES, *([*glob.glob("/dev/nvidia*"), "/proc/self"] if cuda else [])]
    restrict(_readable_paths(), [scratch, *devices])
    if user:
        become(user)


def leave_network() -> bool:
    """Move the calling single-threaded process into a network namespace without any interface, where the host lets it."""
    user, group = os.geteuid(), os.getegid()
    flags = _CLONE_NEWNET if user == 0 else _CLONE_NEWUSER | _CLONE_NEWNET
    if ctypes.CDLL(None).unshare(flags) != 0:
        return False
    if flags & _CLONE_NEWUSER:
        with contextlib.suppress(OSError):
            Path("/proc/self/setgroups").write_text("deny")
            Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
            Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    return True


def sandbox_layers() -> dict[str, bool]:
    """Which layers hold a candidate on this machine; tried in a child process."""
    pid = os.fork()
    if pid == 0:
        os._exit(0 if leave_network() else 1)
    abi = landlock_abi()
    return {
        "own process group, limits, clean environment": True,
        "a user of its own for each candidate": own_users(),
        "no network (namespace)": os.waitpid(pid, 0)[1] == 0,
        "files outside of its scratch directory (Landlock)": abi >= 1,
        "no TCP (Landlock)": abi >= 4,
        "signals and tracing of other processes (Landlock)": abi >= 6,
    }


def _readable_paths() -> list[str]:
    """The system's software, this interpreter and everything importable; not home or temporary directories as such."""
    return [*_SYSTEM_PATHS, sys.prefix, sys.base_prefix, sys.exec_prefix, *sys.path, *os.environ["PATH"].split(":")]


def _limit(kind: int, value: int) -> None:
    _, hard = resource.getrlimit(kind)
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(kind, (value, value))


def _address_space() -> int:
    """Bytes of address space in use."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
