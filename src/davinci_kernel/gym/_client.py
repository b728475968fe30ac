"""`HttpGym`: a `Gym` that asks a KernelGYM server, and `open_gym`, which chooses between a server and a pool of its own.

Each evaluation has a task id of its own and is submitted under it until the server has answered, so that no retry, whatever
went wrong between, is judged twice.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
import uuid
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import httpx
from pydantic import ValidationError

from davinci_kernel.errors import EvaluatorError, UserError
from davinci_kernel.tasks import Task

from ._pool import GymPool
from ._types import Candidate, EvalSettings, Verdict
from ._wire import EvaluationRequest, EvaluationResponse, Priority

SERVER_VARIABLE = "KERNELGYM_SERVER_URL"
TOKEN_VARIABLE = "KERNELGYM_TOKEN"

_CONNECT_SECONDS = 5.0
_WAIT_SECONDS = 20.0
"""A request is held by the server for this long while there is no result."""
_READ_SLACK = 20.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 10.0
_CONNECTIONS = 256
_BUSY = (429, 502, 503, 504)
"""Answers after which the same is sent again."""


@dataclass(frozen=True)
class _Ask:
    """One request; its answer is sent back into the conversation, or None where there was none."""

    method: str
    path: str
    json: dict[str, Any] | None = None
    wait: float = 0.0


@dataclass(frozen=True)
class _Pause:
    seconds: float


_Conversation = Generator[_Ask | _Pause, httpx.Response | httpx.TransportError | None, Verdict]


class HttpGym:
    """Judges on a server; same interface as `GymPool`.

    Args:
        url: of the server, such as ``http://node1:10907``.
        settings: defaults for `evaluate`.
        token: sent as bearer token, if any.
        cache_verdicts: let the server answer with its verdict on an identical candidate; False for grading.
        priority: of the submissions.
        patience: seconds without any answer of the server after which `evaluate` gives up.
    """

    def __init__(
        self,
        url: str,
        settings: EvalSettings | None = None,
        *,
        token: str = "",
        cache_verdicts: bool = True,
        priority: Priority = "normal",
        patience: float = 300.0,
    ):
        self.url = url.rstrip("/")
        self.settings = settings or EvalSettings.model_validate({})
        self.cache_verdicts, self.priority, self.patience = cache_verdicts, priority, patience
        self._options: dict[str, Any] = {
            "base_url": _checked(self.url),
            "headers": {"Authorization": f"Bearer {token}"} if token else {},
            "timeout": httpx.Timeout(_WAIT_SECONDS + _READ_SLACK, connect=_CONNECT_SECONDS, pool=None),
            "limits": httpx.Limits(max_connections=_CONNECTIONS, max_keepalive_connections=_CONNECTIONS),
        }
        self._client: httpx.AsyncClient | None = None

    async def __aenter__(self) -> HttpGym:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def evaluate(
        self, task: Task, candidate: Candidate, settings: EvalSettings | None = None, *, fresh: bool = False
    ) -> Verdict:
        """Judge one candidate.

        Raises:
            UserError: the server refuses the request, or its token.
            EvaluatorError: no answer for longer than `patience`, or one that is no answer.
        """
        self._client = self._client or httpx.AsyncClient(**self._options)
        conversation = self._converse(task, candidate, settings, fresh)
        answer: httpx.Response | httpx.TransportError | None = None
        while True:
            try:
                step = conversation.send(answer)
            except StopIteration as end:
                return end.value
            if isinstance(step, _Pause):
                await asyncio.sleep(step.seconds)
                answer = None
                continue
            try:
                answer = await self._client.request(step.method, step.path, json=step.json, params={"wait": step.wait})
            except httpx.TransportError as error:
                answer = error

    async def evaluate_many(
        self, pairs: Sequence[tuple[Task, Candidate]], settings: EvalSettings | None = None
    ) -> list[Verdict]:
        return list(await asyncio.gather(*(self.evaluate(task, candidate, settings) for task, candidate in pairs)))

    def evaluate_blocking(
        self, task: Task, candidate: Candidate, settings: EvalSettings | None = None, *, fresh: bool = False
    ) -> Verdict:
        """`evaluate` without asyncio, on a connection of its own; raises the same."""
        conversation = self._converse(task, candidate, settings, fresh)
        answer: httpx.Response | httpx.TransportError | None = None
        with httpx.Client(**self._options) as client:
            while True:
                try:
                    step = conversation.send(answer)
                except StopIteration as end:
                    return end.value
                if isinstance(step, _Pause):
                    time.sleep(step.seconds)
                    answer = None
                    continue
                try:
                    answer = client.request(step.method, step.path, json=step.json, params={"wait": step.wait})
                except httpx.TransportError as error:
                    answer = error

    def check(self) -> None:
        """Make sure that a KernelGYM answers and takes the token.

        Raises:
            UserError: it does not.
        """
        try:
            with httpx.Client(**self._options) as client:
                answer = client.get("/queue/status")
        except httpx.TransportError as error:
            raise UserError(
                f"{SERVER_VARIABLE}={self.url}: no answer ({error}); start `davinci gym serve` there, or unset the variable"
            ) from None
        if answer.status_code == 401:
            raise UserError(
                f"{SERVER_VARIABLE}={self.url}: {_message(answer)}; set {TOKEN_VARIABLE} to the server's token"
            )
        if answer.status_code != 200:
            raise UserError(f"{SERVER_VARIABLE}={self.url}: no KernelGYM answers there (HTTP {answer.status_code})")

    async def close(self) -> None:
        """Close the connections; what was submitted is still judged."""
        if self._client is not None:
            client, self._client = self._client, None
            await client.aclose()

    def _converse(self, task: Task, candidate: Candidate, settings: EvalSettings | None, fresh: bool) -> _Conversation:
        """What to send and when, whoever sends it: submit, then ask for the result until there is one."""
        request = EvaluationRequest(
            task_id=uuid.uuid4().hex,
            reference_code=task.code,
            kernel_code=candidate.code,
            entry_point=task.entry_point,
            backend=candidate.backend,
            priority=self.priority,
            is_valid=fresh or not self.cache_verdicts,
            settings=settings or self.settings,
            problem=task.task_id[:500],
        )
        submit = _Ask("POST", "/evaluate", request.model_dump(mode="json"), _WAIT_SECONDS)
        ask_again = _Ask("GET", f"/results/{request.task_id}", wait=_WAIT_SECONDS)
        step, heard, failures = submit, time.monotonic(), 0
        while True:
            answer = yield step
            assert answer is not None
            if isinstance(answer, httpx.TransportError) or answer.status_code in _BUSY:
                silent = isinstance(answer, httpx.TransportError) or answer.status_code != 429
                heard = heard if silent else time.monotonic()
                if time.monotonic() - heard > self.patience:
                    said = answer if isinstance(answer, httpx.TransportError) else f"HTTP {answer.status_code}"
                    raise EvaluatorError(f"{self.url}: no answer for {self.patience:g} s ({said!r})")
                failures += 1
                yield _Pause(_pause(answer, failures))
                continue
            heard, failures = time.monotonic(), 0
            if answer.status_code == 404 and step is ask_again:  # the server has lost its database
                step = submit
                continue
            result = _result(self.url, answer)
            if result.verdict is not None:
                return result.verdict
            if result.status not in ("pending", "processing"):
                raise EvaluatorError(f"{self.url}: the task was {result.status}: {result.error_message}")
            step = ask_again


def open_gym(
    settings: EvalSettings | None = None,
    *,
    compile_slots: int = 0,
    quiet: asyncio.Lock | None = None,
    cache_verdicts: bool = True,
) -> GymPool | HttpGym:
    """The server that ``KERNELGYM_SERVER_URL`` names, with ``KERNELGYM_TOKEN``; without that variable a pool in this process.

    Args:
        settings, cache_verdicts: of either.
        compile_slots, quiet: of the pool; see `GymPool`.

    Raises:
        UserError: the server does not answer, or refuses the token.
    """
    if url := os.environ.get(SERVER_VARIABLE, ""):
        token = os.environ.get(TOKEN_VARIABLE, "")
        gym = HttpGym(url, settings, token=token, cache_verdicts=cache_verdicts)
        gym.check()
        return gym
    return GymPool(settings, compile_slots=compile_slots, quiet=quiet, cache_verdicts=cache_verdicts)


def _checked(url: str) -> str:
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL:
        parsed = httpx.URL()
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise UserError(f"{SERVER_VARIABLE}={url}: expected an address such as http://127.0.0.1:10907")
    return url


def _pause(answer: httpx.Response | httpx.TransportError, failures: int) -> float:
    """Seconds to wait: what the server asks for, else doubling; both with jitter, so that clients do not come back at once."""
    pause = min(_FIRST_PAUSE * 2 ** (failures - 1), _LONGEST_PAUSE)
    asked = "" if isinstance(answer, httpx.TransportError) else answer.headers.get("Retry-After", "")
    if asked.isdigit():
        pause = max(pause, float(asked))
    return pause * random.uniform(0.5, 1.0) if not asked else pause * random.uniform(1.0, 1.5)


def _result(url: str, answer: httpx.Response) -> EvaluationResponse:
    if answer.status_code == 401:
        raise UserError(f"{url}: {_message(answer)}; set {TOKEN_VARIABLE} to the server's token")
    if answer.status_code in (400, 409, 413):
        raise UserError(f"{url} refuses the request: {_message(answer)}")
    if answer.status_code not in (200, 202):
        raise EvaluatorError(f"{url}: HTTP {answer.status_code}: {_message(answer)}")
    try:
        return EvaluationResponse.model_validate_json(answer.content)
    except ValidationError as error:
        field = ".".join(map(str, error.errors()[0]["loc"]))
        raise EvaluatorError(f"{url}: no answer of a KernelGYM that gives whole verdicts ({field})") from None


def _message(answer: httpx.Response) -> str:
    try:
        return str(answer.json()["message"])[:500]
    except (ValueError, KeyError, TypeError):
        return answer.text[:200]
