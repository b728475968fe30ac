"""Landlock by system call: files, TCP and signals that a process and its children may still reach.

There is no kept Python binding; the kernel's interface is three calls (``man 7 landlock``).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import struct
from collections.abc import Iterable
from functools import cache

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_CREATE_RULESET_VERSION = 1
_RULE_PATH_BENEATH = 1
_PR_SET_NO_NEW_PRIVS = 38

_READ = 0b1101
"""Execute, read files, read directories."""
_FILE_BITS_BY_ABI = (0, 13, 14, 15, 15, 16)
"""Number of file access rights that each ABI version knows."""
_FILE_ONLY = 0b1100_0000_0000_0111
"""Rights that apply to a file itself: execute, write, read, truncate, device control."""
_TCP, _SCOPES = 0b11, 0b11
_TCP_ABI, _SCOPE_ABI = 4, 6


@cache
def landlock_abi() -> int:
    """Landlock version of the running kernel; 0 where it has none."""
    version = ctypes.CDLL(None).syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _CREATE_RULESET_VERSION)
    return max(0, int(version))


def restrict(readable: Iterable[str], writable: Iterable[str]) -> bool:
    """Leave this process only these paths, no TCP, and signals to its own descendants; False without Landlock.

    Args:
        readable: directories or files that may be read and executed; missing ones are passed over.
        writable: directories or files that may be written too.
    """
    abi = landlock_abi()
    if not abi:
        return False
    files = (1 << _FILE_BITS_BY_ABI[min(abi, len(_FILE_BITS_BY_ABI) - 1)]) - 1
    attributes = struct.pack("Q", files)
    if abi >= _TCP_ABI:
        attributes += struct.pack("Q", _TCP)
    if abi >= _SCOPE_ABI:
        attributes += struct.pack("Q", _SCOPES)
    libc = ctypes.CDLL(None, use_errno=True)
    ruleset = libc.syscall(_CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), 0)
    if ruleset < 0:
        return False
    for paths, rights in ((readable, _READ), (writable, files)):
        for path in paths:
            with contextlib.suppress(OSError):
                _allow(libc, ruleset, path, rights & files)
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    restricted = libc.syscall(_RESTRICT_SELF, ruleset, 0) == 0
    os.close(ruleset)
    return restricted


def _allow(libc: ctypes.CDLL, ruleset: int, path: str, rights: int) -> None:
    fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    if not os.path.isdir(path):
        rights &= _FILE_ONLY
    libc.syscall(_ADD_RULE, ruleset, _RULE_PATH_BENEATH, struct.pack("=Qi", rights, fd), 0)
    os.close(fd)
