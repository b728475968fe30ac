"""The `LLM` protocol: token ids in; token ids, log-probabilities and a finish reason out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

Message = dict[str, Any]
"""A chat message: ``{"role": "system"|"user"|"assistant"|"tool", "content": str, "tool_calls": [...]}``.

In training rows an assistant's message may have ``"weight": 0``: it is shown, not learned.
"""
ToolSchema = dict[str, Any]
"""A tool in OpenAI's function schema: ``{"type": "function", "function": {name, description, parameters}}``."""


@dataclass(frozen=True)
class SamplingParams:
    """How to draw one completion. Temperature 0 is greedy.

    Attributes:
        seed: makes this completion's randomness its own, whatever it is batched with. None: not reproducible.
    """

    max_tokens: int = 1024
    temperature: float = 1.0
    top_p: float = 1.0
    seed: int | None = None


@dataclass(frozen=True)
class Completion:
    """One sampled answer.

    Attributes:
        text: decoded answer without the end-of-turn token.
        token_ids: ids as sampled, end-of-turn token included where it was sampled. Empty for text-only engines.
        logprobs: log-probability of each token under the *untempered* policy distribution that it was drawn from,
            i.e. log-softmax of the logits / temperature (temperature 0 counts as 1). Same length as `token_ids`.
        finish_reason: `stop` (end-of-turn token), `length` (max_tokens), or `error`.
        prompt_ids: the prompt that was completed. Empty for text-only engines.
        tool_calls: calls that the server parsed, for text-only engines: ``[{"name", "arguments"}]``.
        usage: token counts, and cost where the engine knows it.
    """

    text: str
    token_ids: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()
    finish_reason: Literal["stop", "length", "error"] = "stop"
    prompt_ids: tuple[int, ...] = ()
    tool_calls: tuple[dict[str, Any], ...] = ()
    usage: dict[str, float] = field(default_factory=dict)


class LLM(Protocol):
    """An engine. `chat` is `render` then `complete` for engines that know token ids."""

    def render(self, messages: Sequence[Message], tools: Sequence[ToolSchema] | None = None) -> tuple[int, ...]:
        """Prompt token ids, generation prompt included. Raises NotImplementedError for text-only engines."""
        ...

    def extend(
        self, prompt_ids: Sequence[int], response_ids: Sequence[int], new_messages: Sequence[Message]
    ) -> tuple[int, ...]:
        """The next turn's prompt: the ids so far, verbatim, then the new messages. Text-only engines as in `render`."""
        ...

    async def complete(self, prompt_ids: Sequence[int], params: SamplingParams) -> Completion: ...

    async def chat(
        self, messages: Sequence[Message], params: SamplingParams, tools: Sequence[ToolSchema] | None = None
    ) -> Completion: ...

    async def close(self) -> None: ...
