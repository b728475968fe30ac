"""An OpenAI-compatible endpoint over the `transformers` engine: concurrent requests are decoded in one batch.

Served: ``GET /v1/models``, ``GET /health``, ``POST /v1/chat/completions`` with ``tools``, ``n``, ``seed``, ``temperature``,
``top_p``, ``max_tokens``, ``logprobs`` (of the sampled tokens), ``stream`` and vLLM's ``chat_template_kwargs.enable_thinking``.
Other fields are ignored, as servers do, except those that would change the answer: ``stop``, ``top_logprobs``, a ``tool_choice``
that forces a call, and penalties are refused.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import time
import uuid
from collections.abc import AsyncIterator, Callable
from typing import Any, Literal

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response, StreamingResponse
from pydantic import BaseModel, Field, model_validator

from davinci_kernel.errors import UserError

from ._chat import render_prompt
from ._tool_calls import ToolCall, calls_in_text
from ._transformers import TransformersLLM
from ._types import Completion, Message, SamplingParams, ToolSchema

_CALL_MARK = "<tool_call>"


_UNSERVED: dict[str, tuple[Any, ...]] = {
    "stop": (None, "", []),
    "top_logprobs": (None, 0),
    "frequency_penalty": (None, 0),
    "presence_penalty": (None, 0),
    "tool_choice": (None, "auto", "none"),
}
"""Fields that would change the answer, and their values that do not."""


class _StreamOptions(BaseModel):
    include_usage: bool = False


class _TemplateOptions(BaseModel):
    enable_thinking: bool = False


class ChatRequest(BaseModel):
    """The body of a chat request; see the module's docstring."""

    model: str
    messages: list[Message] = Field(min_length=1)
    tools: list[ToolSchema] | None = None
    tool_choice: Literal["auto", "none"] | None = "auto"
    n: int = Field(1, ge=1, le=128)
    seed: int | None = None
    temperature: float = Field(1.0, ge=0)
    top_p: float = Field(1.0, gt=0, le=1)
    max_tokens: int | None = Field(None, ge=1)
    max_completion_tokens: int | None = Field(None, ge=1)
    logprobs: bool = False
    stream: bool = False
    stream_options: _StreamOptions = _StreamOptions()
    chat_template_kwargs: _TemplateOptions = _TemplateOptions()

    @model_validator(mode="before")
    @classmethod
    def _refuse(cls, body: Any) -> Any:
        if isinstance(body, dict):
            wanted = next((field for field, idle in _UNSERVED.items() if body.get(field) not in idle), None)
            if wanted:
                raise ValueError(f"{wanted} is not served; leave it out")
        return body


class _Refusal(Exception):
    """An answer other than 200."""

    def __init__(self, status: int, message: str, kind: str = "invalid_request_error") -> None:
        super().__init__(message)
        self.status, self.message, self.kind = status, message, kind

    def response(self) -> JSONResponse:
        headers = {"Retry-After": "1"} if self.status == 429 else None
        error = {"message": self.message, "type": self.kind, "param": None, "code": None}
        return JSONResponse({"error": error}, self.status, headers)


def chat_app(llm: TransformersLLM, name: str, *, api_key: str = "", max_waiting: int = 1024) -> FastAPI:
    """The endpoint as an ASGI application.

    Args:
        name: of the model, in requests and answers.
        api_key: wanted as a bearer token; empty: none is.
        max_waiting: answers being generated or waiting; a request beyond that is refused with status 429.
    """
    app = FastAPI(title="davinci llm serve", docs_url=None, redoc_url=None)
    started = int(time.time())
    pending = 0

    @app.exception_handler(_Refusal)
    async def refused(_: Request, error: _Refusal) -> Response:
        return error.response()

    @app.exception_handler(UserError)
    async def bad_input(_: Request, error: UserError) -> Response:
        return _Refusal(400, str(error)).response()

    @app.exception_handler(RequestValidationError)
    async def malformed(_: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"] if part != "body")
        return _Refusal(400, ": ".join(filter(None, (field, first["msg"])))).response()

    def admit(request: Request) -> None:
        given = request.headers.get("authorization", "").removeprefix("Bearer ")
        if api_key and not secrets.compare_digest(given.encode(), api_key.encode()):
            raise _Refusal(401, "api key: wrong or missing", "authentication_error")

    @app.get("/health")
    async def health() -> dict[str, Any]:
        return {"status": "ok", "model": name, "pending": pending}

    @app.get("/v1/models")
    async def models(request: Request) -> dict[str, Any]:
        admit(request)
        card = {
            "id": name,
            "object": "model",
            "created": started,
            "owned_by": "davinci",
            "max_model_len": llm.positions,
        }
        return {"object": "list", "data": [card]}

    @app.post("/v1/chat/completions", response_model=None)
    async def chat(body: ChatRequest, request: Request) -> Response:
        nonlocal pending
        admit(request)
        if body.model != name:
            raise _Refusal(404, f"model: {body.model!r} is not served here; {name!r} is", "not_found_error")
        if pending + body.n > max_waiting:
            raise _Refusal(429, f"busy: {pending} answers are waiting, {max_waiting} at most", "rate_limit_error")
        asked = _Chat(llm, name, body)
        pending += body.n

        def finished() -> None:
            nonlocal pending
            pending -= body.n

        if body.stream:
            return StreamingResponse(asked.events(finished), media_type="text/event-stream")
        try:
            return JSONResponse(await asked.answer())
        finally:
            finished()

    return app


class _Chat:
    """One request on its way through the engine."""

    def __init__(self, llm: TransformersLLM, name: str, body: ChatRequest) -> None:
        self.llm, self.body = llm, body
        self.tools = body.tools if body.tool_choice != "none" else None
        self.names = {tool.get("function", {}).get("name") for tool in self.tools or ()}
        messages = [_for_template(message, i) for i, message in enumerate(body.messages)]
        thinking = body.chat_template_kwargs.enable_thinking
        self.prompt_ids = render_prompt(llm.tokenizer, messages, self.tools, enable_thinking=thinking)
        self.params = [self._params(draw) for draw in range(body.n)]
        llm.limit(len(self.prompt_ids), self.params[0])
        self.head = {"id": f"chatcmpl-{uuid.uuid4().hex}", "created": int(time.time()), "model": name}

    async def answer(self) -> dict[str, Any]:
        """The whole response body."""
        completions = await asyncio.gather(*(self.llm.complete(self.prompt_ids, params) for params in self.params))
        choices = []
        for index, completion in enumerate(completions):
            content, calls = _split(completion.text, self.names)
            message = {"role": "assistant", "content": content or None, "tool_calls": _served(calls) or None}
            choice = {
                "index": index,
                "message": {k: v for k, v in message.items() if v is not None or k != "tool_calls"},
            }
            choice |= {"finish_reason": "tool_calls" if calls else completion.finish_reason}
            choices.append(choice | {"logprobs": self._logprobs(completion) if self.body.logprobs else None})
        return {**self.head, "object": "chat.completion", "choices": choices, "usage": self._usage(completions)}

    async def events(self, finished: Callable[[], None]) -> AsyncIterator[str]:
        """Server-sent events: text as it is sampled; tool calls, each whole, at the end of their choice."""
        queue: asyncio.Queue[tuple[dict[str, Any] | None, Completion | None]] = asyncio.Queue()
        tasks = [asyncio.create_task(self._stream(i, params, queue)) for i, params in enumerate(self.params)]
        completions: list[Completion] = []
        try:
            while len(completions) < len(tasks):
                choice, completion = await queue.get()
                if choice is None:
                    raise RuntimeError("generation failed")
                if completion is not None:
                    completions.append(completion)
                yield self._event([choice])
            if self.body.stream_options.include_usage:
                yield self._event([], usage=self._usage(completions))
            yield "data: [DONE]\n\n"
        finally:
            for task in tasks:
                task.cancel()
            finished()

    async def _stream(self, index: int, params: SamplingParams, queue: asyncio.Queue[Any]) -> None:
        loop = asyncio.get_running_loop()
        shown = ""
        ids: list[int] = []

        def put(delta: dict[str, Any], reason: str | None = None, completion: Completion | None = None) -> None:
            choice = {"index": index, "delta": delta, "finish_reason": reason, "logprobs": None}
            if completion is not None and self.body.logprobs:
                choice["logprobs"] = self._logprobs(completion)
            queue.put_nowait((choice, completion))

        def show(text: str) -> None:
            nonlocal shown
            if len(text) > len(shown):
                put({"content": text[len(shown) :]})
                shown = text

        def sampled(token: int) -> None:
            ids.append(token)
            text = self.llm.decode(ids)
            if text.startswith(shown) and not text.endswith("\ufffd"):
                show(_before_call(text) if self.names else text)

        put({"role": "assistant", "content": ""})
        try:
            completion = await self.llm.complete(
                self.prompt_ids, params, on_token=lambda token: loop.call_soon_threadsafe(sampled, token)
            )
        except Exception:
            queue.put_nowait((None, None))
            raise
        content, calls = _split(completion.text, self.names)
        if content.startswith(shown):
            show(content)
        for number, call in enumerate(_served(calls)):
            put({"tool_calls": [{"index": number, **call}]})
        put({}, "tool_calls" if calls else completion.finish_reason, completion)

    def _params(self, draw: int) -> SamplingParams:
        body = self.body
        limit = body.max_completion_tokens or body.max_tokens or self.llm.positions or 1024
        seed = None if body.seed is None else body.seed + draw
        return SamplingParams(max_tokens=limit, temperature=body.temperature, top_p=body.top_p, seed=seed)

    def _logprobs(self, completion: Completion) -> dict[str, Any]:
        content = []
        for token, logprob in zip(completion.token_ids, completion.logprobs, strict=True):
            text = self.llm.decode([token])
            content.append({"token": text, "logprob": logprob, "bytes": list(text.encode()), "top_logprobs": []})
        return {"content": content, "refusal": None}

    def _usage(self, completions: list[Completion]) -> dict[str, int]:
        written = sum(len(completion.token_ids) for completion in completions)
        read = len(self.prompt_ids)
        return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}

    def _event(self, choices: list[dict[str, Any]], **more: Any) -> str:
        chunk = {**self.head, "object": "chat.completion.chunk", "choices": choices, **more}
        return f"data: {json.dumps(chunk)}\n\n"


def _for_template(message: Message, index: int) -> Message:
    """Text parts joined, and calls' arguments as objects, which is what chat templates expect."""
    if not isinstance(message.get("role"), str):
        raise UserError(f"messages[{index}]: no role")
    content = message.get("content") or ""
    if isinstance(content, list):
        if any(not isinstance(part, dict) or part.get("type") != "text" for part in content):
            raise UserError(f"messages[{index}]: only text is served")
        content = "".join(str(part.get("text", "")) for part in content)
    message = {**message, "content": content}
    calls = message.pop("tool_calls", None)
    if calls:
        message["tool_calls"] = [_call_for_template(call, f"messages[{index}].tool_calls") for call in calls]
    return message


def _call_for_template(call: Any, where: str) -> dict[str, Any]:
    try:
        function = dict(call["function"])
        if isinstance(function["arguments"], str):
            function["arguments"] = json.loads(function["arguments"])
        return {"type": "function", "function": {"name": function["name"], "arguments": function["arguments"]}}
    except (KeyError, TypeError, ValueError):
        raise UserError(f"{where}: expected function.name, and function.arguments as a JSON string") from None


def _split(text: str, names: set[str | None]) -> tuple[str, list[ToolCall]]:
    """The text before the first call of an offered tool, and the calls. A call that cannot be read stays text."""
    calls = [call for call in calls_in_text(text) if call.name in names]
    return (text[: calls[0].start].rstrip() if calls else text), calls


def _before_call(text: str) -> str:
    """What may be streamed already: nothing from where a call begins, or may have begun."""
    start = text.find(_CALL_MARK)
    if start >= 0:
        return text[:start].rstrip()
    held = next((n for n in range(len(_CALL_MARK) - 1, 0, -1) if text.endswith(_CALL_MARK[:n])), 0)
    return text[: len(text) - held].rstrip()


def _served(calls: list[ToolCall]) -> list[dict[str, Any]]:
    return [
        {
            "id": f"call_{uuid.uuid4().hex[:24]}",
            "type": "function",
            "function": {"name": call.name, "arguments": json.dumps(call.arguments, ensure_ascii=False)},
        }
        for call in calls
    ]
