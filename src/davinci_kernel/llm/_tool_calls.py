"""Tool calls in a model's text, in whatever form it writes them: Hermes JSON, Qwen XML, fenced JSON.

Lenient on the form (text around a call, raw newlines in JSON strings); who uses the arguments validates them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_OPENING = re.compile(r"<tool_call>\s*(?=\{)|^```json[ \t]*\n\s*(?=\{)|<function=([^>\s]+)>", re.MULTILINE)
_PARAMETER = re.compile(r"<parameter=([^>\s]+)>\n?(.*?)\n?</parameter>", re.DOTALL)
_JSON = json.JSONDecoder(strict=False)
# Besides malformed JSON: numbers of thousands of digits, and nesting without end, as a degenerate model writes them.
_UNREADABLE = (ValueError, RecursionError)


@dataclass(frozen=True)
class ToolCall:
    """One call: the tool's name, its arguments as an object, and where its text begins (0 for a served one)."""

    name: str
    arguments: dict[str, Any]
    start: int = 0


def calls_in_text(text: str) -> Iterator[ToolCall]:
    """Every call in a text that can be read, in order."""
    position = 0
    while opening := _OPENING.search(text, position):
        position = opening.end()
        if opening[1]:
            end = text.find("</function>", position)
            body = text[position:] if end < 0 else text[position:end]
            arguments = {key: _xml_value(value) for key, value in _PARAMETER.findall(body)}
            yield ToolCall(opening[1], arguments, opening.start())
            position += len(body)
            continue
        try:
            value, position = _JSON.raw_decode(text, position)
        except _UNREADABLE:
            continue
        call = call_from_object(value, opening.start())
        if call:
            yield call


def call_from_object(value: Any, start: int = 0) -> ToolCall | None:
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
    return ToolCall(value["name"], dict(arguments), start) if isinstance(arguments, Mapping) else None


def _xml_value(text: str) -> Any:
    """Lists and objects are JSON; anything else is the text itself."""
    if text.lstrip()[:1] not in ("[", "{"):
        return text
    try:
        return _JSON.decode(text.strip())
    except _UNREADABLE:
        return text
