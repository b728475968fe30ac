"""`GymPool`: judges many candidates on one machine's devices, each a `Station`.

The pool's process only hands out work: a fork server forks judges (trusted) and, for them, references and candidates.
"""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Sequence
from types import TracebackType

from davinci_kernel.errors import EvaluatorError, UserError
from davinci_kernel.tasks import Task

from ._hardware import cuda_devices, usable_cores
from ._processes import WorkerFailed, WorkerGone
from ._station import DeviceHealth, Station
from ._turns import Turns
from ._types import Backend, Candidate, EvalSettings, Outcome, Verdict

_ATTEMPTS = 2
_NEEDED: dict[Backend, tuple[tuple[str, str], ...]] = {
    "triton": (("triton", "triton"),),
    "cuda": (("cuda.bindings", "cuda"),),
}
"""Packages of a backend, and the extra that brings them."""


class GymPool:
    """A `Gym` on this machine's CPU and CUDA devices.

    Args:
        settings: defaults for `evaluate`.
        compile_slots: candidates compiled at once; 0: one per core.
        quiet: held while a candidate is measured, so that whoever shares it never disturbs a measurement.
        cache_verdicts: answer a (task, candidate, settings) judged before with the same verdict. Simultaneous
            requests for the same are always judged once.
        devices: indices of the CUDA devices to use, counted among those visible; None: the first, if there is one.

    Raises:
        UserError: a device that is not there.
    """

    def __init__(
        self,
        settings: EvalSettings | None = None,
        *,
        compile_slots: int = 0,
        quiet: asyncio.Lock | None = None,
        cache_verdicts: bool = True,
        devices: Sequence[int] | None = None,
    ):
        self.settings = settings or EvalSettings.model_validate({})
        self.cache_verdicts = cache_verdicts
        host = Turns(compile_slots or usable_cores(), quiet)
        self.cpu = Station(host, self.settings)
        self.cuda = [Station(host, self.settings, "cuda", visible, quiet) for visible in _visible(devices)]
        self._verdicts: dict[tuple[str, str, str, str], asyncio.Task[Verdict]] = {}

    @property
    def stations(self) -> list[Station]:
        return [self.cpu, *self.cuda]

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

    def health(self) -> list[DeviceHealth]:
        """The state of every device; the CPU's comes first."""
        return [station.health() for station in self.stations]

    async def places(self) -> int:
        """Candidates that can be under way at once, over all devices."""
        return sum([await station.places() for station in self.stations])

    async def heal(self) -> None:
        """Put away dead fork servers, as the next candidate would."""
        for station in self.stations:
            await station.drop_dead_server()

    async def close(self) -> None:
        """End every process of the pool."""
        for running in self._verdicts.values():
            running.cancel()
        self._verdicts.clear()
        await asyncio.gather(*(station.close() for station in self.stations))

    def _forget(self, key: tuple[str, str, str, str], done: asyncio.Task[Verdict]) -> None:
        failed = done.cancelled() or done.exception() is not None
        if failed or not self.cache_verdicts or done.result().outcome is Outcome.INFRA_ERROR:
            self._verdicts.pop(key, None)

    async def _evaluate(self, task: Task, candidate: Candidate, settings: EvalSettings) -> Verdict:
        verdict = Verdict(outcome=Outcome.INFRA_ERROR)
        for _ in range(_ATTEMPTS):
            station = self._station(candidate.backend)
            try:
                verdict = await station.judge(task, candidate, settings)
            except (EvaluatorError, WorkerGone, WorkerFailed) as error:
                verdict = Verdict(outcome=Outcome.INFRA_ERROR, message=f"{type(error).__name__}: {error}")
                await station.drop_dead_server()
            if verdict.outcome is not Outcome.INFRA_ERROR or verdict.compiled:  # compiled: there is no device to run it
                break
        return verdict

    def _station(self, backend: Backend) -> Station:
        """The least busy device that a backend can use."""
        fitting = self.cuda if backend != "cpp" and self.cuda else [self.cpu]
        return min(fitting, key=lambda station: station.judging)


def _visible(devices: Sequence[int] | None) -> list[str]:
    """CUDA devices by the names that ``CUDA_VISIBLE_DEVICES`` has for them."""
    there = cuda_devices()
    if devices is None:
        return there[:1]
    if missing := [index for index in devices if not 0 <= index < len(there)]:
        raise UserError(f"CUDA device {missing[0]} is not there: {len(there)} visible")
    return [there[index] for index in devices]


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
