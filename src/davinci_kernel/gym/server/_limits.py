"""What a client may ask for: sizes, trials, seconds."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any

from .._types import EvalSettings

_Message = MutableMapping[str, Any]
_Receive = Callable[[], Awaitable[_Message]]
_Send = Callable[[_Message], Awaitable[None]]


@dataclass(frozen=True)
class Limits:
    """Limits of one server.

    Attributes:
        body_bytes: of one request, a batch included.
        queue: evaluations that wait.
        correct_trials: per evaluation.
        timed_calls: processes x rounds per evaluation.
        seconds: each timeout of an evaluation.
        memory_gb: of a candidate.
    """

    body_bytes: int = 16 << 20
    queue: int = 10_000
    correct_trials: int = 100
    timed_calls: int = 1000
    seconds: float = 3600.0
    memory_gb: float = 64.0

    def excess(self, settings: EvalSettings) -> str:
        """What exceeds these limits, in one line; empty if nothing does."""
        asked = (
            ("num_correct_trials", settings.num_correct_trials, self.correct_trials),
            ("settings.max_processes x rounds", settings.max_processes * settings.rounds, self.timed_calls),
            ("settings.min_processes x rounds", settings.min_processes * settings.rounds, self.timed_calls),
            ("settings.compile_timeout", settings.compile_timeout, self.seconds),
            ("settings.run_timeout", settings.run_timeout, self.seconds),
            ("settings.memory_limit_gb", settings.memory_limit_gb, self.memory_gb),
        )
        for name, value, most in asked:
            if value > most:
                return f"{name} is {value:g}; this server allows {most:g}"
        return ""


class BodyLimit:
    """ASGI middleware: a body of more bytes than allowed ends the request with 413 before anything reads it whole."""

    def __init__(self, app: Any, body_bytes: int, respond: Callable[[], Any]):
        self.app, self.body_bytes, self.respond = app, body_bytes, respond

    async def __call__(self, scope: MutableMapping[str, Any], receive: _Receive, send: _Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        declared = headers.get(b"content-length", b"0")
        if declared.isdigit() and int(declared) > self.body_bytes:
            await self.respond()(scope, receive, send)
            return
        chunks: list[bytes] = []
        size, more = 0, True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            chunks.append(message.get("body", b""))
            size += len(chunks[-1])
            more = message.get("more_body", False)
            if size > self.body_bytes:
                await self.respond()(scope, receive, send)
                return
        body: list[_Message] = [{"type": "http.request", "body": b"".join(chunks), "more_body": False}]

        async def replay() -> _Message:
            return body.pop() if body else await receive()

        await self.app(scope, replay, send)
