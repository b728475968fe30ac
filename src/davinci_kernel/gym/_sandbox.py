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
_CLONE_NEWNS, _CLONE_NEWUSER, _CLONE_NEWNET = 0x20000, 0x10000000, 0x40000000
_MS_NOSUID, _MS_NODEV, _MS_REC, _MS_PRIVATE, _MNT_DETACH = 0x2, 0x4, 0x4000, 0x40000, 0x2
_SCRATCH = b"size=2g,nr_inodes=65536,mode=700"
"""Of a candidate's directory."""
_FIRST_TO_GO = "1000"
"""The highest value of ``oom_score_adj``."""
_MAX_PROCESSES = 4096
"""Of the user that runs the gym, whose other processes count too."""
_OWN_PROCESSES = 256
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
    Path("/proc/self/oom_score_adj").write_text(_FIRST_TO_GO)  # where memory runs out, the candidate goes first
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


def leave_host() -> bool:
    """Move the calling single-threaded process into namespaces of its own, where the host lets it: no network interface,
    and mounts that nobody else sees. False where it stays in the host's network."""
    user, group = os.geteuid(), os.getegid()
    libc = ctypes.CDLL(None)
    flags = _CLONE_NEWNET if user == 0 else _CLONE_NEWUSER | _CLONE_NEWNET
    private = libc.unshare(flags | _CLONE_NEWNS) == 0
    if not private and libc.unshare(flags) != 0:
        return False
    if flags & _CLONE_NEWUSER:
        with contextlib.suppress(OSError):
            Path("/proc/self/setgroups").write_text("deny")
            Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
            Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    if private:
        libc.mount(b"none", b"/", None, _MS_REC | _MS_PRIVATE, None)
    return True


def mount_scratch(directory: str) -> bool:
    """Give a directory a file system of its own in memory, 2 GiB and 65536 files; False where the host does not let us."""
    libc = ctypes.CDLL(None)
    return libc.mount(b"tmpfs", os.fsencode(directory), b"tmpfs", _MS_NOSUID | _MS_NODEV, _SCRATCH) == 0


def unmount_scratch(directory: str) -> None:
    """Undo `mount_scratch`: the files are gone once nothing holds them."""
    ctypes.CDLL(None).umount2(os.fsencode(directory), _MNT_DETACH)


def sandbox_layers() -> dict[str, bool]:
    """Which layers hold a candidate on this machine; tried in a child process."""
    abi = landlock_abi()
    left, mounted = _tried_namespaces()
    return {
        "own process group, limits, clean environment": True,
        "a user of its own for each candidate": own_users(),
        "no network (namespace)": left,
        "limited space for files (file system of its own)": mounted,
        "files outside of its scratch directory (Landlock)": abi >= 1,
        "no TCP (Landlock)": abi >= 4,
        "signals and tracing of other processes (Landlock)": abi >= 6,
    }


def _tried_namespaces() -> tuple[bool, bool]:
    """Whether `leave_host` and then `mount_scratch` work, tried in a child process."""
    with tempfile.TemporaryDirectory() as directory:
        pid = os.fork()
        if pid == 0:
            left = leave_host()
            os._exit(left + 2 * mount_scratch(directory))
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return bool(code & 1), bool(code & 2)


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
