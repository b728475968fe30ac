"""Tool calls: found in a completion, and written for training rows. The agents validate the arguments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from davinci_kernel.llm import Completion, Message, ToolCall, call_from_object, calls_in_text

from ._thinking import split_thinking


def find_call(completion: Completion, tool: str) -> tuple[ToolCall | None, str]:
    """The completion's first call of `tool` (None: it has none that can be read) and its reasoning text."""
    thought, answer = split_thinking(completion.text)
    served = filter(None, map(call_from_object, completion.tool_calls))
    calls = [*served, *calls_in_text(answer)]
    return next((call for call in calls if call.name == tool), None), thought


def tool_message(tool: str, arguments: Mapping[str, Any]) -> Message:
    """An assistant message that calls `tool`, for a chat template to render."""
    function = {"name": tool, "arguments": dict(arguments)}
    return {"role": "assistant", "content": "", "tool_calls": [{"type": "function", "function": function}]}
