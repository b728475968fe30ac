"""The engine for OpenAI-compatible servers: text in, text out; no token ids, so it can be graded but not trained."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from davinci_kernel.errors import UserError

from ._types import Completion, Message, SamplingParams, ToolSchema

if TYPE_CHECKING:
    from openai.types.chat import ChatCompletion

_FINISH: dict[str | None, Literal["stop", "length", "error"]] = {"length": "length", "content_filter": "error"}


class OpenAILLM:
    """Chat completions of a server.

    Args:
        model: the server's name of the model.
        base_url: such as ``http://localhost:8000/v1``. None: the environment's OPENAI_BASE_URL, else OpenAI.
        api_key: None: the environment's OPENAI_API_KEY; a server of one's own needs none.
        max_concurrency: requests in flight at most.
        timeout: seconds per request.
        max_retries: further attempts after a lost connection, a full server or a server error.

    Raises:
        UserError: OpenAI itself without a key.
    """

    def __init__(
        self,
        model: str,
        base_url: str | None = None,
        api_key: str | None = None,
        *,
        max_concurrency: int = 16,
        timeout: float = 600.0,
        max_retries: int = 4,
    ) -> None:
        from openai import AsyncOpenAI

        base_url = base_url or os.environ.get("OPENAI_BASE_URL")
        key = api_key or os.environ.get("OPENAI_API_KEY")
        if not key and not base_url:
            raise UserError("api_key: none given; set OPENAI_API_KEY, or base_url for a server of your own")
        self.model = model
        self._client = AsyncOpenAI(base_url=base_url, api_key=key or "none", timeout=timeout, max_retries=max_retries)
        self._slots = asyncio.Semaphore(max_concurrency)

    def render(self, messages: Sequence[Message], tools: Sequence[ToolSchema] | None = None) -> tuple[int, ...]:
        """Raises NotImplementedError: the server does not tell its token ids."""
        raise NotImplementedError(
            "an OpenAI-compatible server gives no token ids; use chat, or TransformersLLM to train"
        )

    def extend(
        self, prompt_ids: Sequence[int], response_ids: Sequence[int], new_messages: Sequence[Message]
    ) -> tuple[int, ...]:
        """Not available, as `render`."""
        return self.render(new_messages)

    async def complete(self, prompt_ids: Sequence[int], params: SamplingParams) -> Completion:
        """Raises NotImplementedError: the server takes no token ids."""
        raise NotImplementedError(
            "an OpenAI-compatible server takes no token ids; use chat, or TransformersLLM to train"
        )

    async def chat(
        self, messages: Sequence[Message], params: SamplingParams, tools: Sequence[ToolSchema] | None = None
    ) -> Completion:
        """One answer.

        Raises:
            UserError: the server cannot be reached, does not answer in time, or refuses the request.
        """
        import openai

        arguments: dict[str, Any] = {
            "model": self.model,
            "messages": [_for_server(message) for message in messages],
            "max_tokens": params.max_tokens,
            "temperature": params.temperature,
            "top_p": params.top_p,
        }
        if params.seed is not None:
            arguments["seed"] = params.seed
        if tools:
            arguments["tools"] = list(tools)
        where = f"{self._client.base_url} (model {self.model})"
        try:
            async with self._slots:
                response: ChatCompletion = await self._client.chat.completions.create(**arguments)
        except openai.APIConnectionError as error:
            raise UserError(f"{where}: no answer ({_line(error)}); is the server running?") from error
        except openai.APIStatusError as error:
            raise UserError(f"{where}: refused with status {error.status_code}: {_line(error)}") from error
        except openai.OpenAIError as error:
            raise UserError(f"{where}: {_line(error)}") from error
        return _completion(response)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()


def _completion(response: ChatCompletion) -> Completion:
    usage: dict[str, float] = {}
    if response.usage is not None:
        usage["prompt_tokens"] = response.usage.prompt_tokens
        usage["completion_tokens"] = response.usage.completion_tokens
    if not response.choices:
        return Completion(text="", finish_reason="error", usage=usage)
    choice = response.choices[0]
    functions = [call.function for call in choice.message.tool_calls or () if call.type == "function"]
    return Completion(
        text=choice.message.content or "",
        finish_reason=_FINISH.get(choice.finish_reason, "stop"),
        tool_calls=tuple({"name": f.name, "arguments": _arguments(f.arguments)} for f in functions),
        usage=usage,
    )


def _arguments(text: str) -> Any:
    """The call's arguments as an object; the text itself where it is not JSON, for the agents to reject."""
    try:
        return json.loads(text, strict=False)
    except json.JSONDecodeError:
        return text


def _for_server(message: Message) -> Message:
    """The API wants an id on each call and its arguments as a JSON string."""
    if not message.get("tool_calls"):
        return dict(message)
    calls = []
    for number, call in enumerate(message["tool_calls"]):
        function: Mapping[str, Any] = call.get("function", call)
        arguments = function["arguments"]
        text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
        name = {"name": function["name"], "arguments": text}
        calls.append({"id": call.get("id", f"call_{number}"), "type": "function", "function": name})
    return {**message, "tool_calls": calls}


def _line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
