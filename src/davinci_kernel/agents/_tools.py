"""Tool calls: read from whatever form a model writes them in, and written for training rows.

Lenient on the form (Hermes JSON, Qwen XML, fenced JSON, calls that a server has parsed; text around them; raw
newlines in JSON strings), strict on the content: the agents validate the arguments.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from davinci_kernel.llm import Completion, Message

from ._thinking import split_thinking

_OPENING = re.compile(r"<tool_call>\s*(?=\{)|^```json[ \t]*\n\s*(?=\{)|<function=([^>\s]+)>", re.MULTILINE)
_PARAMETER = re.compile(r"<parameter=([^>\s]+)>\n?(.*?)\n?</parameter>", re.DOTALL)
_JSON = json.JSONDecoder(strict=False)
# Besides malformed JSON: numbers of thousands of digits, and nesting without end, as a degenerate model writes them.
_UNREADABLE = (ValueError, RecursionError)


@dataclass(frozen=True)
class ToolCall:
    """One call: the tool's name and its arguments as an object."""

    name: str
    arguments: dict[str, Any]


def find_call(completion: Completion, tool: str) -> tuple[ToolCall | None, str]:
    """The completion's first call of `tool` (None: it has none that can be read) and its reasoning text."""
    thought, answer = split_thinking(completion.text)
    served = filter(None, map(_from_object, completion.tool_calls))
    calls = [*served, *_calls_in(answer)]
    return next((call for call in calls if call.name == tool), None), thought


def tool_message(tool: str, arguments: Mapping[str, Any]) -> Message:
    """An assistant message that calls `tool`, for a chat template to render."""
    function = {"name": tool, "arguments": dict(arguments)}
    return {"role": "assistant", "content": "", "tool_calls": [{"type": "function", "function": function}]}


def _calls_in(text: str) -> Iterator[ToolCall]:
    position = 0
    while opening := _OPENING.search(text, position):
        position = opening.end()
        if opening[1]:
            end = text.find("</function>", position)
            body = text[position:] if end < 0 else text[position:end]
            yield ToolCall(opening[1], {key: _xml_value(value) for key, value in _PARAMETER.findall(body)})
            position += len(body)
            continue
        try:
            value, position = _JSON.raw_decode(text, position)
        except _UNREADABLE:
            continue
        call = _from_object(value)
        if call:
            yield call


def _from_object(value: Any) -> ToolCall | None:
    """``{"name", "arguments"}``, also nested under ``function`` as OpenAI does; arguments an object or its JSON."""
    if isinstance(value, Mapping) and isinstance(value.get("function"), Mapping):
        value = value["function"]
    if not isinstance(value, Mapping) or not isinstance(value.get("name"), str):
        return None
    arguments = value.get("arguments")
    try:
        if isinstance(arguments, str):
            arguments = _JSON.decode(arguments)
        # Half a surrogate pair, which JSON can spell, is text that no tokenizer and no file takes.
        json.dumps(arguments, ensure_ascii=False).encode()
    except _UNREADABLE:
        return None
    return ToolCall(value["name"], dict(arguments)) if isinstance(arguments, Mapping) else None


def _xml_value(text: str) -> Any:
    """Lists and objects are JSON; anything else is the text itself."""
    if text.lstrip()[:1] not in ("[", "{"):
        return text
    try:
        return _JSON.decode(text.strip())
    except _UNREADABLE:
        return text
