"""`GymPool`: judges many candidates on one machine; compiles overlap, timing is alone.

The pool's process only hands out work: a fork server forks judges (trusted) and, for them, references and candidates.
"""

from __future__ import annotations

import asyncio
import dataclasses
import importlib.util
import itertools
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from types import TracebackType

from davinci_kernel.errors import EvaluatorError, UserError
from davinci_kernel.tasks import Task

from ._hardware import has_cuda, usable_cores
from ._processes import ForkServer, WorkerFailed, WorkerGone, WorkerProcess
from ._types import Backend, Candidate, EvalSettings, Outcome, Verdict

_ATTEMPTS = 2
_NEEDED: dict[Backend, tuple[tuple[str, str], ...]] = {
    "triton": (("triton", "triton"),),
    "cuda": (("cuda.bindings", "cuda"),),
}
"""Packages of a backend, and the extra that brings them."""
_SLACK_SECONDS = 120.0


class _Device:
    """Many compiles or one measurement; a waiting measurement goes first."""

    def __init__(self, slots: int, quiet: asyncio.Lock | None):
        self.condition = asyncio.Condition()
        self.slots, self.quiet = slots, quiet or asyncio.Lock()
        self.compiling = self.waiting = 0
        self.measuring = False

    @asynccontextmanager
    async def compile(self) -> AsyncIterator[None]:
        async with self.condition:
            await self.condition.wait_for(
                lambda: not self.measuring and not self.waiting and self.compiling < self.slots
            )
            self.compiling += 1
        try:
            yield
        finally:
            async with self.condition:
                self.compiling -= 1
                self.condition.notify_all()

    @asynccontextmanager
    async def measure(self) -> AsyncIterator[None]:
        async with self.condition:
            self.waiting += 1
            try:
                await self.condition.wait_for(lambda: not self.measuring and not self.compiling)
                self.measuring = True
            finally:
                self.waiting -= 1
                self.condition.notify_all()
        try:
            async with self.quiet:
                yield
        finally:
            async with self.condition:
                self.measuring = False
                self.condition.notify_all()


class GymPool:
    """A `Gym` on this machine's CPU.

    Args:
        settings: defaults for `evaluate`.
        compile_slots: candidates compiled at once; 0: one per core.
        quiet: held while a candidate runs, so that whoever shares it never disturbs a measurement.
        cache_verdicts: answer a (task, candidate, settings) judged before with the same verdict. Simultaneous
            requests for the same are always judged once.
    """

    def __init__(
        self,
        settings: EvalSettings | None = None,
        *,
        compile_slots: int = 0,
        quiet: asyncio.Lock | None = None,
        cache_verdicts: bool = True,
    ):
        self.settings = settings or EvalSettings.model_validate({})
        self.slots = compile_slots or usable_cores()
        self.cache_verdicts = cache_verdicts
        self._quiet = quiet
        self._device: _Device | None = None
        self._server: ForkServer | None = None
        self._starting = asyncio.Lock()
        self._idle: list[WorkerProcess] = []
        self._judges = asyncio.Semaphore(2 * self.slots)
        self._names = itertools.count(1)
        self._verdicts: dict[tuple[str, str, str, str], asyncio.Task[Verdict]] = {}

    async def __aenter__(self) -> GymPool:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def evaluate(
        self, task: Task, candidate: Candidate, settings: EvalSettings | None = None, *, fresh: bool = False
    ) -> Verdict:
        """Judge one candidate; `fresh`: with a measurement of its own.

        Without a CUDA device a Triton candidate is interpreted and compiled ahead of time, but not timed, and a CUDA
        candidate is compiled only.

        Raises:
            UserError: a backend whose packages are not installed.
        """
        settings = settings or self.settings
        if missing := missing_package(candidate.backend):
            raise UserError(f"backend {candidate.backend}: {missing}")
        if fresh:
            return await self._evaluate(task, candidate, settings)
        key = (task.content_hash, candidate.content_hash, candidate.backend, settings.model_dump_json())
        running = self._verdicts.get(key)
        if running is None:
            running = asyncio.ensure_future(self._evaluate(task, candidate, settings))
            self._verdicts[key] = running
            running.add_done_callback(lambda done: self._forget(key, done))
        return await asyncio.shield(running)

    async def evaluate_many(
        self, pairs: Sequence[tuple[Task, Candidate]], settings: EvalSettings | None = None
    ) -> list[Verdict]:
        return list(await asyncio.gather(*(self.evaluate(task, candidate, settings) for task, candidate in pairs)))

    async def close(self) -> None:
        """End every process of the pool."""
        for running in self._verdicts.values():
            running.cancel()
        self._verdicts.clear()
        self._idle.clear()
        if self._server is not None:
            server, self._server = self._server, None
            await asyncio.to_thread(server.close)

    def _forget(self, key: tuple[str, str, str, str], done: asyncio.Task[Verdict]) -> None:
        failed = done.cancelled() or done.exception() is not None
        if failed or not self.cache_verdicts or done.result().outcome is Outcome.INFRA_ERROR:
            self._verdicts.pop(key, None)

    async def _evaluate(self, task: Task, candidate: Candidate, settings: EvalSettings) -> Verdict:
        verdict = Verdict(outcome=Outcome.INFRA_ERROR)
        for _ in range(_ATTEMPTS):
            async with self._judges:
                try:
                    verdict = await self._judge(task, candidate, settings)
                except (EvaluatorError, WorkerGone, WorkerFailed) as error:
                    verdict = Verdict(outcome=Outcome.INFRA_ERROR, message=f"{type(error).__name__}: {error}")
                    await self._drop_dead_server()
            if verdict.outcome is not Outcome.INFRA_ERROR or verdict.compiled:  # compiled: there is no device to run it
                break
        return verdict

    async def _judge(self, task: Task, candidate: Candidate, settings: EvalSettings) -> Verdict:
        if self._device is None:
            self._device = _Device(self.slots, self._quiet)
        judge = await self._take_judge()
        async with self._device.compile():
            reply = await asyncio.to_thread(
                judge.call,
                "compile",
                settings.compile_timeout + _SLACK_SECONDS,
                task=dataclasses.asdict(task),
                candidate=candidate.model_dump(),
                settings=self._with_threads(settings).model_dump(),
                device="cuda" if candidate.backend != "cpp" and has_cuda() else "cpu",
            )
        if "verdict" not in reply:
            async with self._device.measure():
                reply = await asyncio.to_thread(judge.call, "check", _check_seconds(settings))
        self._idle.append(judge)
        return Verdict.model_validate(reply["verdict"])

    def _with_threads(self, settings: EvalSettings) -> EvalSettings:
        """Settings whose number of threads is counted here: OpenMP binds a judge to one core, where it would count one."""
        return settings.model_copy(update={"num_threads": settings.num_threads or usable_cores()})

    async def _take_judge(self) -> WorkerProcess:
        async with self._starting:
            if self._server is None:
                threads = self.settings.num_threads or usable_cores()
                self._server = await asyncio.to_thread(ForkServer, threads)
        if self._idle:
            return self._idle.pop()
        return await asyncio.to_thread(self._start_judge, self._server)

    def _start_judge(self, server: ForkServer) -> WorkerProcess:
        threads = self.settings.num_threads or usable_cores()
        directory = server.directory(f"judge{next(self._names)}")
        judge = server.client.fork("judge", directory, memory_bytes=0, threads=threads)
        connection = server.client.connect()
        judge.call("attach", _SLACK_SECONDS, fds=[connection.fileno()])
        connection.close()
        return judge

    async def _drop_dead_server(self) -> None:
        if self._server is not None and self._server.process.poll() is not None:
            server, self._server = self._server, None
            self._idle.clear()
            await asyncio.to_thread(server.close)


def missing_package(backend: Backend) -> str:
    """What a backend lacks on this machine, as an instruction; empty where its packages are installed."""
    for needed, extra in _NEEDED.get(backend, ()):
        try:
            found = importlib.util.find_spec(needed) is not None
        except ModuleNotFoundError:
            found = False
        if not found:
            return f"{needed} is not installed; pip install 'davinci-kernel[{extra}]'"
    return ""


def evaluate_once(task: Task, candidate: Candidate, settings: EvalSettings | None = None) -> Verdict:
    """Judge one candidate with a pool of its own; for scripts and tests."""

    async def judge() -> Verdict:
        async with GymPool(settings, compile_slots=1) as pool:
            return await pool.evaluate(task, candidate)

    return asyncio.run(judge())


def _check_seconds(settings: EvalSettings) -> float:
    """A bound on a whole check whose every step stays within its own limit."""
    trials = settings.num_correct_trials + 10
    processes = settings.max_processes * (settings.compile_timeout + 8 * settings.rounds * settings.run_timeout)
    return _SLACK_SECONDS + 4 * trials * settings.run_timeout + processes
