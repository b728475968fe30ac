"""A user of its own for each candidate, where the gym runs as root: limits on processes do not bind root.

The users come from the range that systemd keeps for services without an account (``DynamicUser=``), so that they own nothing.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import random
import signal
import stat
import struct
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path

_USERS = range(61184, 65520)
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_KEEPCAPS, _PR_CAP_AMBIENT = 1, 4, 8, 47
_CAP_AMBIENT_RAISE = 2
_CAP_DAC_READ_SEARCH = 2
_CAPABILITY_VERSION_3 = 0x20080522


@cache
def own_users() -> bool:
    """Whether candidates can run as users of their own: the gym runs as root, and such users exist in its namespace."""
    if os.geteuid() != 0:
        return False
    pid = os.fork()
    if pid == 0:
        try:
            become(_USERS[0])
        except OSError:
            os._exit(1)
        os._exit(0)
    return os.waitpid(pid, 0)[1] == 0


def free_user(taken: Iterable[int]) -> int:
    """A user that has no process now and is not among ``taken``."""
    used = {*taken, *(_owner(pid) for pid in _processes())}
    return random.SystemRandom().choice([user for user in _USERS if user not in used])


def become(user: int) -> None:
    """Give up root for good; die with the parent, and own the files of ``/proc/self``, as before.

    Where the interpreter or its packages lie in a directory that only root may enter, the right to read files stays;
    Landlock bounds it.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    reads = not all(map(_readable_to_anybody, _needed()))
    libc.prctl(_PR_SET_KEEPCAPS, int(reads), 0, 0, 0)
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    if reads:
        held = 1 << _CAP_DAC_READ_SEARCH
        header = struct.pack("=Ii", _CAPABILITY_VERSION_3, 0)
        if libc.capset(header, struct.pack("=6I", held, held, held, 0, 0, 0)) != 0:
            raise OSError(ctypes.get_errno(), "capset")
        libc.prctl(_PR_CAP_AMBIENT, _CAP_AMBIENT_RAISE, _CAP_DAC_READ_SEARCH, 0, 0)
    libc.prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def end_user(user: int) -> None:
    """Kill all processes of a user at once: a fork bomb is faster than whoever kills its processes one by one."""
    if not any(_owner(pid) == user for pid in _processes()):
        return
    pid = os.fork()
    if pid == 0:
        try:
            become(user)
            os.kill(-1, signal.SIGKILL)
        finally:
            os._exit(0)
    os.waitpid(pid, 0)


def _needed() -> list[str]:
    return [path for path in (sys.prefix, sys.base_prefix, *sys.path) if path and os.path.exists(path)]


def _readable_to_anybody(path: str) -> bool:
    resolved = Path(path).resolve()
    through = all(folder.stat().st_mode & stat.S_IXOTH for folder in resolved.parents)
    wanted = stat.S_IROTH | (stat.S_IXOTH if resolved.is_dir() else 0)
    return through and resolved.stat().st_mode & wanted == wanted


def _processes() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _owner(pid: int) -> int:
    with contextlib.suppress(OSError):
        return os.stat(f"/proc/{pid}").st_uid
    return -1
