"""Timing: interleaved rounds of reference and candidate on fresh inputs, in several candidate processes.

One round: both sides load the same never-seen inputs (a bank set with random spans replaced from another one) into
buffers at new addresses, then each runs once, alone. The time is the worker's own monotonic clock around forward; the
judge's clock around the whole request, and the process's CPU time outside of it, are the check on that.
"""

from __future__ import annotations

import random
import statistics
import time
from dataclasses import dataclass, field, replace
from typing import Any

from ._reference import InputSet, Reference, Rejection
from ._subject import Subject
from ._tensors import DTYPES, tensor_nodes
from ._timing import contended, process_ratio
from ._trials import expect_equal
from ._types import EvalSettings, Outcome

_WARM_UP_CALLS = 2
_WARM_UP_SECONDS = 0.01
_PATCHED_SHARE = 16
_REPEAT_FACTOR = 1
_OUTSIDE_MARGIN = 300e-6
_OUTSIDE_SHARE = 0.2
_BUSY_MARGIN = 1e-3
_LATE_MARGIN = 8e-6
_LATE_SHARE = 0.05
_FEWEST_ROUNDS = 3


@dataclass
class Call:
    """One timed call: seconds inside the worker and outside of it, page faults, involuntary switches."""

    inside: float
    outside: float
    faults: int
    switches: int
    idle_after: bool = True
    busy_before: bool = False
    late: float = 0.0


@dataclass
class Session:
    """The rounds of one candidate process."""

    reference: list[Call] = field(default_factory=list)
    candidate: list[Call] = field(default_factory=list)
    dropped: int = 0

    @property
    def ratio(self) -> float:
        return process_ratio([call.inside for call in self.reference], [call.inside for call in self.candidate])

    def candidate_seconds(self) -> float:
        """What the candidate's calls took, by the judge's clock."""
        return sum(call.outside for call in self.candidate)

    def hides_time(self) -> list[bool]:
        """Of each candidate call: the judge saw it take longer than its own clock says, beyond the usual overhead."""
        overhead = statistics.median(call.outside - call.inside for call in self.reference)
        return [
            call.outside - call.inside - overhead > max(_OUTSIDE_MARGIN, _OUTSIDE_SHARE * call.outside)
            for call in self.candidate
        ]

    def undisturbed(self) -> list[bool]:
        """Of each round: neither side was preempted into an outlier, and the two clocks agree."""
        disturbed = [
            contended([call.inside for call in calls], [call.switches for call in calls])
            for calls in (self.reference, self.candidate)
        ]
        return [not any(flags) for flags in zip(*disturbed, self.hides_time(), strict=True)]

    def keep(self, kept: list[bool]) -> Session:
        """Only the kept rounds; all of them where fewer than `_FEWEST_ROUNDS` are, charged by the outside clock."""
        if kept.count(True) < _FEWEST_ROUNDS:
            whole = [replace(call, inside=call.outside) for call in self.candidate]
            return Session([replace(call, inside=call.outside) for call in self.reference], whole)
        pairs = [
            pair for pair, flag in zip(zip(self.reference, self.candidate, strict=True), kept, strict=True) if flag
        ]
        return Session([pair[0] for pair in pairs], [pair[1] for pair in pairs], kept.count(False))

    def record(self) -> dict[str, Any]:
        """For provenance."""
        sides = {"reference": self.reference, "candidate": self.candidate}
        record: dict[str, Any] = {"ratio": self.ratio, "rounds": len(self.candidate), "dropped": self.dropped}
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
    subject.load(sets[0])
    subject.call("warm", bytes=reference.warm_bytes)
    warm_up = Session()
    while len(warm_up.candidate) < _WARM_UP_CALLS and warm_up.candidate_seconds() < _WARM_UP_SECONDS:
        _round(reference, subject, sets, draw, warm_up)
    session = Session()
    checked = draw.randrange(settings.rounds)
    for index in range(settings.rounds):
        chosen = _round(reference, subject, sets, draw, session)
        if index in (checked, settings.rounds - 1):  # who cheats from some call on cheats in the last one
            _recheck(reference, subject, chosen, settings)
    _refuse_async(session)
    kept = session.undisturbed()
    while kept.count(True) < settings.rounds and len(kept) < (1 + _REPEAT_FACTOR) * settings.rounds:
        _round(reference, subject, sets, draw, session)
        kept = session.undisturbed()
    _refuse_hidden_time(session)
    return session.keep(kept)


def _round(
    reference: Reference, subject: Subject, sets: list[InputSet], draw: random.Random, session: Session
) -> InputSet:
    base, other = draw.sample(sets, 2) if len(sets) > 1 else (sets[0], sets[0])
    fields = {"patches": _patches(base, draw), "patch_from": other.name}
    reference.load(base, fields)
    session.reference.append(_reference_call(reference, base.forward_seed))
    session.candidate.append(_candidate_call(subject, base, fields))
    return base


def _reference_call(reference: Reference, seed: int) -> Call:
    start = time.perf_counter()
    reply = reference.run(seed)
    outside = time.perf_counter() - start
    reference.settle()
    return Call(reply["ns"] / 1e9, outside, reply["faults"], reply["switches"], late=reply["late_ns"] / 1e9)


def _candidate_call(subject: Subject, base: InputSet, fields: dict[str, Any]) -> Call:
    cpu, start = subject.cpu_seconds(), time.perf_counter()
    subject.load(base, **fields)
    busy = subject.cpu_seconds() - cpu - (time.perf_counter() - start) > _BUSY_MARGIN
    start = time.perf_counter()
    reply = subject.call("run", seed=base.forward_seed)
    outside = time.perf_counter() - start
    nanoseconds, faults, switches, late = (_count(reply, name) for name in ("ns", "faults", "switches", "late_ns"))
    seconds = max(nanoseconds, 1) / 1e9
    return Call(seconds, outside, faults, switches, subject.settle(), busy, late / 1e9)


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


def _refuse_async(session: Session) -> None:
    if sum(call.busy_before or not call.idle_after for call in session.candidate) > len(session.candidate) / 2:
        raise Rejection(Outcome.HACK, "threads compute outside of forward", "async-work")
    usual = statistics.median(call.late for call in session.reference)
    beyond = [call.late - usual > max(_LATE_MARGIN, _LATE_SHARE * call.inside) for call in session.candidate]
    if sum(beyond) > len(beyond) / 2:
        late = statistics.median(call.late for call in session.candidate) * 1e3
        raise Rejection(
            Outcome.HACK, f"the device computes for {late:.3f} ms after forward's stream is done", "async-work"
        )


def _refuse_hidden_time(session: Session) -> None:
    """A clock that lies does so in every call; on a busy machine some calls show no gap."""
    if all(session.hides_time()):
        inside = statistics.median(call.inside for call in session.candidate) * 1e3
        outside = statistics.median(call.outside for call in session.candidate) * 1e3
        message = f"its clock says {inside:.2f} ms for calls that took {outside:.2f} ms"
        raise Rejection(Outcome.HACK, message, "clock")
