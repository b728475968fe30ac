"""The launch record of this process: which compiled kernels ran and how long; and the ghost mode that skips them."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

MAX_LAUNCHES = 1 << 17
"""Launches remembered; older ones are forgotten."""


class Launch(NamedTuple):
    """One call of a compiled function."""

    name: str
    seconds: float


class Recorder:
    """What the call path writes to: spans in nanoseconds, and whether calls are skipped."""

    __slots__ = ("ghost", "spans")

    def __init__(self) -> None:
        self.spans: deque[tuple[str, int, int]] = deque(maxlen=MAX_LAUNCHES)
        self.ghost = False


RECORDER = Recorder()


def launches() -> list[Launch]:
    """Launches since the last `reset`, oldest first."""
    return [Launch(name, (end - start) / 1e9) for name, start, end in RECORDER.spans]


def kernel_seconds() -> float:
    """Seconds spent inside compiled functions since the last `reset`."""
    return sum(end - start for _, start, end in RECORDER.spans) / 1e9


def reset() -> None:
    """Forget all launches."""
    RECORDER.spans.clear()


def set_ghost(on: bool) -> None:
    """In ghost mode a call checks its arguments, launches nothing, is not recorded and returns 0."""
    RECORDER.ghost = on
