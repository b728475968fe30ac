"""`GymService`: the queue between the HTTP API and a pool. It knows nothing of HTTP.

Submissions that ask for the same judgement share one *evaluation*; evaluations start by priority, then in order, as many at
once as the pool has places.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import statistics
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from davinci_kernel.tasks import Task

from .._station import DeviceHealth
from .._types import Candidate, EvalSettings, Outcome, Verdict
from .._wire import EvaluationRequest, Priority
from ._store import StoredTask, TaskStore

_RANK: dict[Priority, int] = {"high": 0, "normal": 1, "low": 2}
_LATEST = 64
"""Verdicts whose mean time is the estimate of the next one's."""


class JudgesHere(Protocol):
    """What the service needs of a pool."""

    settings: EvalSettings

    async def evaluate(
        self, task: Task, candidate: Candidate, settings: EvalSettings | None = None, *, fresh: bool = False
    ) -> Verdict: ...

    async def places(self) -> int: ...

    async def heal(self) -> None: ...

    def health(self) -> list[DeviceHealth]: ...

    async def close(self) -> None: ...


class QueueFull(Exception):
    """No room; `retry_after` is in seconds."""

    def __init__(self, retry_after: int):
        super().__init__(f"the queue is full; try again in {retry_after} s")
        self.retry_after = retry_after


class Draining(Exception):
    """The server is about to stop and takes nothing new."""


class TaskConflict(Exception):
    """A task id that is taken by another candidate, reference or settings."""


@dataclass(eq=False)
class _Evaluation:
    """One judgement and the tasks that wait for it."""

    key: str
    request: EvaluationRequest
    rank: int
    number: int
    tasks: dict[str, int] = field(default_factory=dict)
    """Generations by task id."""
    running: asyncio.Task[None] | None = None

    def __lt__(self, other: _Evaluation) -> bool:
        return (self.rank, self.number) < (other.rank, other.number)


class GymService:
    """Takes tasks, has them judged, keeps the results.

    Args:
        pool: judges; `close` belongs to whoever has made it.
        store: tasks and results on record.
        max_queue: evaluations that may wait.
        cache: answer with the verdict on an identical candidate, where the request allows it.
        on_verdict: called with every new verdict and the seconds that it took.
    """

    def __init__(
        self,
        pool: JudgesHere,
        store: TaskStore,
        *,
        max_queue: int = 10_000,
        cache: bool = True,
        on_verdict: Callable[[Verdict, float], None] = lambda verdict, seconds: None,
    ):
        self.pool, self.store, self.max_queue, self.cache, self.on_verdict = pool, store, max_queue, cache, on_verdict
        self.places = 1
        self.draining = False
        self.cache_hits = 0
        self._queue: list[_Evaluation] = []
        self._waiting: set[_Evaluation] = set()
        self._running: set[_Evaluation] = set()
        self._by_key: dict[str, _Evaluation] = {}
        self._by_task: dict[str, _Evaluation] = {}
        self._finished: dict[str, asyncio.Event] = {}
        self._seconds: deque[float] = deque(maxlen=_LATEST)
        self._positions: dict[str, int] | None = None

    async def start(self) -> int:
        """Queue what the record has unfinished; returns how many tasks that are."""
        self.places = await self.pool.places()
        unfinished = self.store.unfinished()
        for task in unfinished:
            self._enqueue(task)
        self._fill()
        return len(unfinished)

    @property
    def waiting(self) -> int:
        """Evaluations that have not started."""
        return len(self._waiting)

    @property
    def under_way(self) -> int:
        """Evaluations that have started."""
        return len(self._running)

    @property
    def mean_seconds(self) -> float | None:
        """Mean time of the latest verdicts; None before the first."""
        return statistics.fmean(self._seconds) if self._seconds else None

    def submit(self, requests: Sequence[EvaluationRequest]) -> None:
        """Accept tasks, all or none. A task that is known is not accepted twice, unless it is finished and refreshed.

        Raises:
            TaskConflict: an id that is taken.
            Draining: the server is about to stop.
            QueueFull: more evaluations wait than may.
        """
        new: list[tuple[EvaluationRequest, str]] = []
        keys: dict[str, str] = {}
        for request in requests:
            key = request.key(self.pool.settings)
            known = self.store.get(request.task_id)
            if keys.get(request.task_id, key) != key or (known is not None and known.key != key):
                raise TaskConflict(
                    f"task_id {request.task_id!r} is taken by another candidate, reference or settings; use a new one"
                )
            again = request.task_id in keys
            keys[request.task_id] = key
            if not again and (known is None or (request.force_refresh and known.completed is not None)):
                new.append((request, key))
        if not new:
            return
        if self.draining:
            raise Draining("the server is about to stop; try again")
        if self.waiting + len({key for _, key in new}) > self.max_queue:
            raise QueueFull(self.retry_after())
        self.store.add(new, time.time())
        for request, _ in new:
            task = self.store.get(request.task_id)
            assert task is not None
            self._enqueue(task)
        self._fill()

    async def wait(self, task_ids: Sequence[str], seconds: float) -> None:
        """Wait until these tasks are finished, the time is over, or the server is about to stop."""
        deadline = time.monotonic() + seconds
        for task_id in task_ids:
            event = self._finished.get(task_id)
            left = deadline - time.monotonic()
            if event is None:
                continue
            if left <= 0 or self.draining:
                return
            with contextlib.suppress(TimeoutError, asyncio.TimeoutError):
                await asyncio.wait_for(event.wait(), left)

    def cancel(self, task_id: str) -> bool:
        """Give up a task; False if it is unknown or finished. Its evaluation ends unless others wait for it."""
        if not self.store.cancel(task_id, time.time()):
            return False
        evaluation = self._by_task[task_id]
        self._leave(evaluation, task_id)
        if not evaluation.tasks:
            self._end(evaluation)
            if evaluation.running is not None:
                evaluation.running.cancel()
        return True

    def is_under_way(self, task_id: str) -> bool:
        evaluation = self._by_task.get(task_id)
        return evaluation is not None and evaluation.running is not None

    def position(self, task_id: str) -> int | None:
        """How many evaluations start before this task's, plus one; None unless it waits."""
        if self._positions is None:
            self._positions = {task: place for place, e in enumerate(sorted(self._waiting), 1) for task in e.tasks}
        return self._positions.get(task_id)

    def seconds_left(self, task_id: str) -> float | None:
        """An estimate of when the task is finished; None if nothing can be said."""
        mean, place = self.mean_seconds, self.position(task_id)
        if mean is None or task_id not in self._by_task:
            return None
        return mean if place is None else mean * (1 + place / self.places)

    def retry_after(self) -> int:
        """Whole seconds after which there should be room in a full queue."""
        return max(1, round((self.mean_seconds or 1.0) / self.places))

    def begin_drain(self) -> None:
        """Take nothing new, start nothing more, and let go whoever waits."""
        self.draining = True
        for event in self._finished.values():
            event.set()

    def give_up(self) -> None:
        """Stop what is under way; it stays on record as unfinished."""
        for evaluation in self._running:
            if evaluation.running is not None:
                evaluation.running.cancel()

    async def drain(self, seconds: float) -> int:
        """Wait for what is under way, and stop what is late; returns how many tasks are left for the next start."""
        self.begin_drain()
        running = [evaluation.running for evaluation in self._running if evaluation.running is not None]
        if running:
            await asyncio.wait(running, timeout=seconds)
        self.give_up()
        await asyncio.gather(*running, return_exceptions=True)
        return len(self.store.unfinished())

    def _enqueue(self, task: StoredTask) -> None:
        """Let a task wait for the evaluation that it can share, or for one of its own."""
        rank, request = _RANK[task.request.priority], task.request
        key = f"{task.key}/{task.task_id}" if request.own_measurement else task.key
        evaluation = self._by_key.get(key)
        if evaluation is None:
            evaluation = self._by_key[key] = _Evaluation(key, request, rank, task.number)
            heapq.heappush(self._queue, evaluation)
            self._waiting.add(evaluation)
        elif evaluation.running is None and rank < evaluation.rank:
            evaluation.rank = rank
            heapq.heapify(self._queue)
        evaluation.tasks[task.task_id] = task.generation
        if evaluation.running is not None:
            self.store.start(task.task_id, time.time())
        self._by_task[task.task_id] = evaluation
        self._finished[task.task_id] = asyncio.Event()
        self._positions = None

    def _fill(self) -> None:
        """Start evaluations while there are places."""
        while self._queue and len(self._running) < self.places and not self.draining:
            evaluation = heapq.heappop(self._queue)
            if evaluation not in self._waiting:
                continue
            self._waiting.discard(evaluation)
            self._positions = None
            request = evaluation.request
            if self.cache and not request.own_measurement and (verdict := self.store.verdict_of(evaluation.key)):
                self.cache_hits += 1
                self._record(evaluation, verdict)
                continue
            for task_id in evaluation.tasks:
                self.store.start(task_id, time.time())
            self._running.add(evaluation)
            evaluation.running = asyncio.ensure_future(self._judge(evaluation))

    async def _judge(self, evaluation: _Evaluation) -> None:
        request = evaluation.request
        started = time.monotonic()
        settings = request.eval_settings(self.pool.settings)
        try:
            verdict = await self.pool.evaluate(request.task(), request.candidate(), settings, fresh=True)
        except Exception as error:  # whatever it is: every task gets a result
            verdict = Verdict(outcome=Outcome.INFRA_ERROR, message=f"{type(error).__name__}: {error}")
        except asyncio.CancelledError:
            self._running.discard(evaluation)
            self._fill()
            raise
        self._running.discard(evaluation)
        seconds = time.monotonic() - started
        self._seconds.append(seconds)
        self.on_verdict(verdict, seconds)
        self._record(evaluation, verdict)
        self._fill()

    def _record(self, evaluation: _Evaluation, verdict: Verdict) -> None:
        for task_id, generation in list(evaluation.tasks.items()):
            self.store.finish(task_id, generation, verdict, time.time())
            self._leave(evaluation, task_id)
        self._end(evaluation)

    def _leave(self, evaluation: _Evaluation, task_id: str) -> None:
        del evaluation.tasks[task_id], self._by_task[task_id]
        self._finished.pop(task_id).set()
        self._positions = None

    def _end(self, evaluation: _Evaluation) -> None:
        self._waiting.discard(evaluation)
        if self._by_key.get(evaluation.key) is evaluation:
            del self._by_key[evaluation.key]
