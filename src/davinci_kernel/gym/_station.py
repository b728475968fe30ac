"""A station: one device with its fork server, judges and turns.

A verdict goes through three phases. *Compile* shares the machine's cores. *Check* (correctness trials, and getting further
candidate processes ready) shares the device where that has memory and engines to share, on CUDA; a CPU is taken whole.
*Measure* (evidence and timing) has the device alone. Whoever waits between phases is stopped.
"""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
import math
import time
from collections import deque
from typing import Any

from davinci_kernel.tasks import Task

from ._device import DeviceName
from ._hardware import gpu_memory_gib, usable_cores
from ._judge import max_references
from ._processes import ForkServer, WorkerProcess
from ._turns import Turns
from ._types import Candidate, EvalSettings, Verdict

_SLACK_SECONDS = 120.0
_GIB_PER_JUDGE = 4.0
"""Device memory for a judge's reference and candidates: contexts, buffers and a task's tensors."""
_MOST_CUDA_JUDGES = 16


@dataclasses.dataclass(frozen=True)
class DeviceHealth:
    """One device of a pool, as it is now.

    Attributes:
        device: ``cpu`` or ``cuda:N``.
        alive: its fork server runs, or none was needed yet.
        judging: candidates under way, waiting ones included.
        longest_seconds: how long the oldest of them has been judged; 0 if there is none.
        overdue: that is longer than its settings' limits allow in all: something is stuck.
    """

    device: str
    alive: bool
    judging: int
    longest_seconds: float
    overdue: bool


class Station:
    """Judges candidates on one device.

    Args:
        host: turns on the machine's cores, shared by every station of the machine.
        settings: defaults; their `num_threads` is what the fork server is started with.
        device: ``cpu`` or ``cuda``.
        visible: the CUDA device, as ``CUDA_VISIBLE_DEVICES`` names it.
        quiet: held during a measurement.
        share_checks: correctness trials of several candidates at once; None: on CUDA.
    """

    def __init__(
        self,
        host: Turns,
        settings: EvalSettings,
        device: DeviceName = "cpu",
        visible: str = "",
        quiet: asyncio.Lock | None = None,
        share_checks: bool | None = None,
    ):
        self.host, self.device, self.visible = host, device, visible
        self.threads = settings.num_threads or usable_cores()
        self.turns = host if device == "cpu" else Turns(host.slots, quiet)
        self.share_checks = device == "cuda" if share_checks is None else share_checks
        self._under_way: dict[int, tuple[float, float]] = {}
        self.server: ForkServer | None = None
        self._seats: asyncio.Semaphore | None = None
        self._starting = asyncio.Lock()
        self._idle: list[_SeatedJudge] = []
        self._names, self._numbers = itertools.count(1), itertools.count(1)

    @property
    def judging(self) -> int:
        """Candidates under way."""
        return len(self._under_way)

    @property
    def name(self) -> str:
        return f"cuda:{self.visible}" if self.device == "cuda" else "cpu"

    async def judge(self, task: Task, candidate: Candidate, settings: EvalSettings) -> Verdict:
        """Judge one candidate.

        Raises:
            EvaluatorError, WorkerGone, WorkerFailed: the judge or its fork server is lost.
        """
        number = next(self._numbers)
        self._under_way[number] = time.monotonic(), math.inf
        try:
            places = await self.places() if self._seats is None else 0
            self._seats = self._seats or asyncio.Semaphore(places)
            async with self._seats:
                self._under_way[number] = time.monotonic(), _most_seconds(settings) * (1 + self.turns.waiting)
                return await self._seated(task, candidate, settings)
        finally:
            del self._under_way[number]

    async def places(self) -> int:
        """Candidates under way at once: what the cores compile ahead of the device, and what its memory holds."""
        places = 2 * self.host.slots
        if self.device == "cuda":
            memory = await asyncio.to_thread(gpu_memory_gib, self.visible)
            places = min(places, _MOST_CUDA_JUDGES, max(1, int(memory / _GIB_PER_JUDGE)))
        return places

    def health(self) -> DeviceHealth:
        now = time.monotonic()
        spent = [(now - since, limit) for since, limit in self._under_way.values()]
        return DeviceHealth(
            device=self.name,
            alive=self.server is None or self.server.process.poll() is None,
            judging=self.judging,
            longest_seconds=round(max((seconds for seconds, _ in spent), default=0.0), 3),
            overdue=any(seconds > limit for seconds, limit in spent),
        )

    async def drop_dead_server(self) -> None:
        """Forget a fork server that has died, and its judges; the next candidate starts another."""
        if self.server is not None and self.server.process.poll() is not None:
            await self.close()

    async def close(self) -> None:
        """End every process of the station."""
        self._idle.clear()
        if self.server is not None:
            server, self.server = self.server, None
            await asyncio.to_thread(server.close)

    async def _seated(self, task: Task, candidate: Candidate, settings: EvalSettings) -> Verdict:
        judge = await self._take_judge(task)
        try:
            async with self.host.shared():
                verdict = await judge.ask(
                    "compile",
                    settings.compile_timeout + _SLACK_SECONDS,
                    task=dataclasses.asdict(task),
                    candidate=candidate.model_dump(),
                    settings=self._with_threads(settings).model_dump(),
                    device=self.device,
                )
            if verdict is None and self.share_checks:
                async with self.turns.shared():
                    verdict = await judge.ask("check", _check_seconds(settings), ahead=settings.min_processes - 1)
            if verdict is None:
                async with self.turns.alone():
                    if not self.share_checks:
                        verdict = await judge.ask("check", _check_seconds(settings), ahead=0)
                    if verdict is None:
                        verdict = await judge.ask("measure", _measure_seconds(settings))
        except BaseException:  # cancelled or lost: its answer would be taken for the next candidate's
            await asyncio.shield(asyncio.to_thread(judge.process.end))
            raise
        assert verdict is not None
        self._idle.append(judge)
        return verdict

    def _with_threads(self, settings: EvalSettings) -> EvalSettings:
        """Settings whose number of threads is counted here: OpenMP binds a judge to one core, where it would count one."""
        return settings.model_copy(update={"num_threads": settings.num_threads or usable_cores()})

    async def _take_judge(self, task: Task) -> _SeatedJudge:
        """An idle judge, best one that has the task's reference; a new one where all are busy."""
        async with self._starting:
            if self.server is None:
                self.server = await asyncio.to_thread(ForkServer, self.threads, self.visible)
        if not self._idle:
            judge = _SeatedJudge(await asyncio.to_thread(self._start_judge, self.server), max_references(self.device))
        else:
            knows = [index for index, judge in enumerate(self._idle) if task.content_hash in judge.tasks]
            judge = self._idle.pop(knows[-1] if knows else -1)
        judge.remember(task)
        return judge

    def _start_judge(self, server: ForkServer) -> WorkerProcess:
        directory = server.directory(f"judge{next(self._names)}")
        judge = server.client.fork("judge", directory, memory_bytes=0, threads=self.threads)
        connection = server.client.connect()
        judge.call("attach", _SLACK_SECONDS, fds=[connection.fileno()])
        connection.close()
        return judge


class _SeatedJudge:
    """A judge's process, and the tasks whose references it keeps."""

    def __init__(self, process: WorkerProcess, references: int):
        self.process = process
        self.tasks: deque[str] = deque(maxlen=references)

    def remember(self, task: Task) -> None:
        if task.content_hash in self.tasks:
            self.tasks.remove(task.content_hash)
        self.tasks.append(task.content_hash)

    async def ask(self, phase: str, timeout: float, **fields: Any) -> Verdict | None:
        """Go through one phase; a verdict if that is the end of it."""
        reply = await asyncio.to_thread(self.process.call, phase, timeout, **fields)
        return Verdict.model_validate(reply["verdict"]) if "verdict" in reply else None


def _most_seconds(settings: EvalSettings) -> float:
    """A bound on the three phases, without waiting."""
    return settings.compile_timeout + _SLACK_SECONDS + _check_seconds(settings) + _measure_seconds(settings)


def _check_seconds(settings: EvalSettings) -> float:
    """A bound on correctness trials whose every step stays within its own limit."""
    trials = settings.num_correct_trials + 10
    return _SLACK_SECONDS + 4 * trials * settings.run_timeout + settings.min_processes * settings.compile_timeout


def _measure_seconds(settings: EvalSettings) -> float:
    """The same of evidence and timing."""
    calls = 8 * settings.rounds
    return _SLACK_SECONDS + settings.max_processes * (settings.compile_timeout + calls * settings.run_timeout)
