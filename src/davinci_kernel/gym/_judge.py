"""The judge of one candidate: compile, correctness trials, evidence, timing; the verdict is made here and nowhere else.

Between its phases a candidate's processes are stopped.
"""

from __future__ import annotations

import os
import statistics
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from davinci_kernel.tasks import Task

from ._device import DeviceName
from ._hardware import describe_hardware
from ._measure import Session, time_process
from ._processes import ForkClient
from ._reference import InputSet, Reference, Rejection
from ._static import check_source
from ._subject import Subject
from ._timing import Speedup, combine
from ._trials import check_correctness, check_evidence
from ._types import Candidate, EvalSettings, Outcome, Verdict

_TIMERS: dict[DeviceName, str] = {
    "cpu": "perf_counter_ns (CLOCK_MONOTONIC), checked from outside",
    "cuda": "CUDA events around forward behind an L2 flush, device idle before and after, checked from outside; no TF32",
}
_MAX_REFERENCES: dict[DeviceName, int] = {"cpu": 8, "cuda": 2}
"""References kept alive for the next candidates of their tasks; on CUDA each holds a context."""
MAX_REFERENCE_BYTES = 1 << 30
"""Input sets and outputs of those references; the least recently used ones go first."""


def max_references(device: DeviceName) -> int:
    """References that a judge keeps."""
    return _MAX_REFERENCES[device]


class Judge:
    """Judges one candidate at a time: `compile`, `check`, `measure`, each unless the one before gave a verdict."""

    def __init__(self, client: ForkClient, scratch: str):
        self.client, self.scratch = client, scratch
        self.references: OrderedDict[tuple[str, str], Reference] = OrderedDict()
        self.subject: Subject | None = None
        self.prepared: list[Subject] = []
        self.directory = ""
        self._directories = 0

    def compile(
        self, task: Task, candidate: Candidate, settings: EvalSettings, device: DeviceName = "cpu"
    ) -> Verdict | None:
        """Import the candidate in its own process; a verdict only if that is the end of it."""
        self.task, self.candidate, self.settings = task, candidate, settings
        self.threads = settings.num_threads
        self.device: DeviceName = device
        self.interpret = device == "cpu" and candidate.backend == "triton"
        self.facts: dict[str, Any] = {}
        self.compiled = False
        self.directory = self._new_directory()
        return self._phase("compile", self._compile)

    def check(self, ahead: int = 0) -> Verdict | None:
        """Run the correctness trials of the candidate that `compile` imported; a verdict unless they pass.

        ``ahead``: further processes of it to get ready for timing, if it passes.
        """
        return self._phase("check", lambda: self._check(ahead))

    def measure(self) -> Verdict:
        """Evidence and timing of the candidate that `check` has found correct; nothing else may use the device."""
        verdict = self._phase("measure", self._measure)
        assert verdict is not None
        return verdict

    def abandon(self) -> None:
        """Let go of the candidate without a verdict."""
        self._close_subjects()
        self.client.release(self.directory)

    def _phase(self, name: str, run: Callable[[], Verdict | None]) -> Verdict | None:
        started = time.monotonic()
        if self.subject is not None:
            self.subject.process.resume()
        try:
            verdict = run()
        except Rejection as rejection:
            verdict = self._rejected(rejection)
        self.facts[f"{name}_seconds"] = round(time.monotonic() - started, 4)
        if verdict is not None:
            return self._end(verdict)
        if self.subject is not None:
            self.subject.process.pause()
        return None

    def _compile(self) -> Verdict | None:
        finding = check_source(self.candidate.code, self.task.entry_point)
        if finding is not None:
            raise Rejection(finding.outcome, finding.message, finding.hack)
        self.subject = self._new_subject()
        self.compiled = True
        return self._only_compiled() if self.device == "cpu" and self.candidate.backend == "cuda" else None

    def _only_compiled(self) -> Verdict:
        """CUDA without a device: what can be said is that it compiles."""
        message = "compiled for sm_90; there is no CUDA device to run it on"
        return Verdict(outcome=Outcome.INFRA_ERROR, message=message, compiled=True)

    def _interpreted(self, reference: Reference, sets: list[InputSet]) -> Verdict:
        """Triton without a device: correct by its interpreter, compiled ahead of time, not timed."""
        assert self.subject is not None
        check_evidence(reference, self.subject, sets, self.settings)
        self._compile_ahead()
        message = "correct by Triton's interpreter, and compiled for sm_90; there is no CUDA device to time it on"
        return Verdict(outcome=Outcome.CORRECT, message=message, compiled=True)

    def _compile_ahead(self) -> None:
        """Compile what the interpreter has launched for a GPU, in a process of its own.

        Raises:
            Rejection: COMPILE_ERROR.
        """
        assert self.subject is not None
        launches = self.subject.call("described")["launches"]
        self._close_subjects()
        self.interpret = False
        self.subject = self._new_subject()
        reply = self.subject.call("ahead", launches=launches)
        self.facts["compiled_ahead"] = {"target": "sm_90", "kernels": reply["compiled"]}

    def _check(self, ahead: int) -> Verdict | None:
        assert self.subject is not None
        reference = self.reference = self._reference()
        self.subject.build(reference)
        try:
            self.sets = check_correctness(reference, self.subject, self.settings)
        except Rejection as rejection:
            if self.interpret and rejection.outcome is Outcome.RUNTIME_ERROR and self.subject.process.alive:
                self._compile_ahead()  # what the compiler says is more than what the interpreter says
            raise
        if self.interpret:
            return self._interpreted(reference, self.sets)
        if ahead and self.settings.measure:
            self._prepare(ahead)
        return None

    def _prepare(self, count: int) -> None:
        """Start and build further processes of the candidate, side by side, and stop them.

        Raises:
            Rejection: one of them failed.
        """
        assert self.subject is not None
        self.subject.process.pause()
        self.prepared = [self._forked_subject() for _ in range(count)]

        def start(subject: Subject) -> None:
            subject.start()
            subject.build(self.reference)
            subject.process.pause()

        with ThreadPoolExecutor(count) as pool:
            list(pool.map(start, self.prepared))

    def _measure(self) -> Verdict:
        assert self.subject is not None
        reference, sets = self.reference, self.sets
        sessions = [time_process(reference, self.subject, sets, self.settings)] if self.settings.measure else []
        coverage = check_evidence(reference, self.subject, sets, self.settings)
        self.facts.update(self.subject.notes)
        speedup = self._more_processes(reference, sets, sessions) if sessions else None
        too_noisy = bool(sessions) and (speedup is None or speedup.relative > self.settings.max_interval)
        self.facts["processes"] = [session.record() for session in sessions]
        shown = None if too_noisy else speedup
        return Verdict(
            outcome=Outcome.CORRECT,
            message="the timing is too noisy for a speedup" if too_noisy else "",
            speedup=shown.value if shown else None,
            speedup_interval=(shown.low, shown.high) if shown else None,
            reference_ms=_median_ms(sessions, "reference_ms"),
            kernel_ms=_median_ms(sessions, "candidate_ms"),
            coverage=coverage,
            too_noisy=too_noisy,
            compiled=True,
        )

    def _more_processes(self, reference: Reference, sets: list[InputSet], sessions: list[Session]) -> Speedup | None:
        """Time further processes until the interval is narrow or there have been enough."""
        while True:
            speedup = combine([session.ratio for session in sessions])
            narrow = speedup is not None and speedup.relative <= self.settings.target_interval
            if (len(sessions) >= self.settings.min_processes and narrow) or len(
                sessions
            ) >= self.settings.max_processes:
                return speedup
            self._next_subject(reference)
            assert self.subject is not None
            sessions.append(time_process(reference, self.subject, sets, self.settings))

    def _next_subject(self, reference: Reference) -> None:
        """Replace the candidate's process by a prepared one, or else by a new one."""
        assert self.subject is not None
        self.subject.close()
        if self.prepared:
            self.subject = self.prepared.pop(0)
            self.subject.process.resume()
        else:
            self.subject = self._new_subject()
            self.subject.build(reference)

    def _reference(self) -> Reference:
        key = (self.task.content_hash, f"{self.threads}/{self.settings.seed}/{self.settings.baseline}/{self.device}")
        reference = self.references.pop(key, None)
        if reference is not None and not reference.works():
            reference.close()
            reference = None
        if reference is None:
            reference = Reference(self.client, self.task, self.scratch, self.settings, self.threads, self.device)
        self.references[key] = reference
        while len(self.references) > 1 and (
            len(self.references) > max_references(self.device)
            or sum(kept.held_bytes for kept in self.references.values()) > MAX_REFERENCE_BYTES
        ):
            self.references.popitem(last=False)[1].close()
        return reference

    def _new_subject(self) -> Subject:
        """A process of the candidate that has imported it."""
        self.subject = self._forked_subject()
        self.subject.start()
        return self.subject

    def _forked_subject(self) -> Subject:
        return Subject(
            self.client,
            self.candidate,
            self.task.entry_point,
            self.settings,
            self.threads,
            self.directory,
            self.device,
            self.interpret,
        )

    def _close_subjects(self) -> None:
        for subject in [*([self.subject] if self.subject else []), *self.prepared]:
            subject.close()
        self.subject, self.prepared = None, []

    def _new_directory(self) -> str:
        self._directories += 1
        path = os.path.join(self.scratch, f"candidate{self._directories}")
        os.makedirs(path)
        return path

    def _end(self, verdict: Verdict) -> Verdict:
        self._close_subjects()
        self.client.release(self.directory)
        provenance = {
            "task": self.task.task_id,
            "task_hash": self.task.content_hash,
            "candidate_hash": self.candidate.content_hash,
            "settings": self.settings.model_dump(),
            "timer": _TIMERS[self.device],
            "hardware": describe_hardware(self.threads, self.device),
            **self.facts,
            **verdict.provenance,
        }
        return verdict.model_copy(update={"provenance": provenance})

    def _rejected(self, rejection: Rejection) -> Verdict:
        return Verdict(
            outcome=rejection.outcome,
            message=rejection.message,
            hack=rejection.hack,
            compiled=self.compiled,
            provenance={"error": rejection.stats} if rejection.stats else {},
        )


def _median_ms(sessions: list[Session], name: str) -> float | None:
    return statistics.median(session.record()[name] for session in sessions) if sessions else None
