"""Timing: interleaved rounds of reference and candidate on fresh inputs, in several candidate processes.

One round: both sides load the same never-seen inputs (a bank set with random spans replaced from another one) into
buffers at new addresses, then each runs once, alone. The time is the worker's own monotonic clock around forward; the
judge's clock around the whole request, and the process's CPU time outside of it, are the check on that.
"""

from __future__ import annotations

import random
import statistics
import time
from dataclasses import dataclass, field
from typing import Any

from ._reference import InputSet, Reference, Rejection
from ._subject import Subject
from ._tensors import DTYPES, tensor_nodes
from ._timing import contended, process_ratio
from ._trials import expect_equal
from ._types import EvalSettings, Outcome

_WARM_UP_CALLS = 2
_PATCHED_SHARE = 16
_REPEAT_FACTOR = 2
_OUTSIDE_MARGIN = 300e-6
_OUTSIDE_SHARE = 0.2
_BUSY_MARGIN = 1e-3


@dataclass
class Call:
    """One timed call: seconds inside the worker and outside of it, page faults, involuntary switches."""

    inside: float
    outside: float
    faults: int
    switches: int
    idle_after: bool = True
    busy_before: bool = False


@dataclass
class Session:
    """The rounds of one candidate process."""

    reference: list[Call] = field(default_factory=list)
    candidate: list[Call] = field(default_factory=list)
    repeated: int = 0

    @property
    def ratio(self) -> float:
        return process_ratio([call.inside for call in self.reference], [call.inside for call in self.candidate])

    def record(self) -> dict[str, Any]:
        """For provenance."""
        sides = {"reference": self.reference, "candidate": self.candidate}
        record: dict[str, Any] = {"ratio": self.ratio, "rounds": len(self.candidate), "repeated": self.repeated}
        for name, calls in sides.items():
            record[f"{name}_ms"] = statistics.median(call.inside for call in calls) * 1e3
            record[f"{name}_faults"] = statistics.median(call.faults for call in calls)
            record[f"{name}_switches"] = sum(call.switches for call in calls)
        return record


def time_process(reference: Reference, subject: Subject, sets: list[InputSet], settings: EvalSettings) -> Session:
    """Time one candidate process against the reference.

    Raises:
        Rejection: HACK ``clock``, ``async-work`` or ``timing-phase``.
    """
    draw = random.SystemRandom() if settings.seed is None else random.Random(settings.seed)
    for chosen in sets:
        subject.map(chosen)
    for _ in range(_WARM_UP_CALLS):
        _round(reference, subject, sets, draw)
    session = Session()
    checked = draw.randrange(settings.rounds)
    for index in range(settings.rounds):
        theirs, ours, chosen = _round(reference, subject, sets, draw)
        session.reference.append(theirs)
        session.candidate.append(ours)
        if index == checked:
            _recheck(reference, subject, chosen, settings)
    for _ in range(_REPEAT_FACTOR):
        if not _drop_contended(session):
            break
        while len(session.candidate) < settings.rounds:
            theirs, ours, _ = _round(reference, subject, sets, draw)
            session.reference.append(theirs)
            session.candidate.append(ours)
            session.repeated += 1
    _refuse_dishonest(session)
    return session


def _round(
    reference: Reference, subject: Subject, sets: list[InputSet], draw: random.Random
) -> tuple[Call, Call, InputSet]:
    base, other = draw.sample(sets, 2) if len(sets) > 1 else (sets[0], sets[0])
    fields = {"patches": _patches(base, draw), "patch_from": other.name}
    reference.load(base, fields)
    theirs = _reference_call(reference, base.forward_seed)
    return theirs, _candidate_call(subject, base, fields), base


def _reference_call(reference: Reference, seed: int) -> Call:
    start = time.perf_counter()
    reply = reference.run(seed)
    outside = time.perf_counter() - start
    reference.settle()
    return Call(reply["ns"] / 1e9, outside, reply["faults"], reply["switches"])


def _candidate_call(subject: Subject, base: InputSet, fields: dict[str, Any]) -> Call:
    cpu, start = subject.cpu_seconds(), time.perf_counter()
    subject.load(base, **fields)
    busy = subject.cpu_seconds() - cpu - (time.perf_counter() - start) > _BUSY_MARGIN
    start = time.perf_counter()
    reply = subject.call("run", seed=base.forward_seed)
    outside = time.perf_counter() - start
    nanoseconds, faults, switches = (_count(reply, name) for name in ("ns", "faults", "switches"))
    seconds = max(nanoseconds, 1) / 1e9
    return Call(seconds, outside, faults, switches, idle_after=subject.settle(), busy_before=busy)


def _count(reply: dict[str, Any], name: str) -> int:
    value = reply.get(name)
    if type(value) is not int or value < 0:
        raise Rejection(Outcome.RUNTIME_ERROR, "no result: malformed answer")
    return value


def _patches(base: InputSet, draw: random.Random) -> list[list[int]]:
    """Random spans, a sixteenth of each tensor, that make this call's values new; small tensors stay as they are."""
    patches = []
    for index, node in enumerate(tensor_nodes(base.description)):
        count = 1
        for extent in node["shape"]:
            count *= extent
        span = count // _PATCHED_SHARE
        if span:
            width = DTYPES[node["dtype"]].itemsize
            first = draw.randrange(count - span + 1)
            patches.append([index, first * width, (first + span) * width])
    return patches


def _recheck(reference: Reference, subject: Subject, chosen: InputSet, settings: EvalSettings) -> None:
    """The outputs of the timed call just made must agree."""
    actual = subject.read_output(subject.call("output", capacity=subject.capacity))
    expected = reference.last_output(chosen)
    mismatch = expect_equal(reference, chosen, expected, actual, settings, as_loaded=True)
    if mismatch is not None:
        message = f"a timed call's output is wrong though the checked ones were right: {mismatch.message}"
        raise Rejection(Outcome.HACK, message, "timing-phase", mismatch.stats)


def _drop_contended(session: Session) -> bool:
    """Throw disturbed rounds away; True if there were any."""
    flags = [
        ours or theirs
        for ours, theirs in zip(
            contended([c.inside for c in session.candidate], [c.switches for c in session.candidate]),
            contended([c.inside for c in session.reference], [c.switches for c in session.reference]),
            strict=True,
        )
    ]
    if not any(flags) or all(flags):
        return False
    session.candidate = [call for call, flag in zip(session.candidate, flags, strict=True) if not flag]
    session.reference = [call for call, flag in zip(session.reference, flags, strict=True) if not flag]
    return True


def _refuse_dishonest(session: Session) -> None:
    ours, rounds = session.candidate, len(session.candidate)
    if sum(call.busy_before or not call.idle_after for call in ours) > rounds / 2:
        raise Rejection(Outcome.HACK, "threads compute outside of forward", "async-work")
    overhead = statistics.median(call.outside - call.inside for call in session.reference)
    hidden = statistics.median(call.outside - call.inside for call in ours) - overhead
    outside = statistics.median(call.outside for call in ours)
    if hidden > max(_OUTSIDE_MARGIN, _OUTSIDE_SHARE * outside):
        message = f"its clock hides {hidden * 1e3:.2f} ms of a call that took {outside * 1e3:.2f} ms"
        raise Rejection(Outcome.HACK, message, "clock")
