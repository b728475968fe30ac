"""Hermes-style tool text, and the chat template of our own small models."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ._types import Message, ToolSchema

END_OF_TURN = "<|im_end|>"
END_OF_TEXT = "<|endoftext|>"
START_OF_TURN = "<|im_start|>"
TOOL_MARKS = ("<tool_call>", "</tool_call>")

_TOOLS_HEAD = (
    '# Tools\nCall a tool by writing {"name": <name>, "arguments": <object>} within <tool_call></tool_call>.\n<tools>\n'
)
_TOOLS_TAIL = "</tools>"
TEMPLATE_TEXTS = ("system\n", "user\n", "assistant\n", *_TOOLS_HEAD.split("".join(TOOL_MARKS)), _TOOLS_TAIL)
"""What the template itself adds to conversations, cut at special tokens: for training a tokenizer."""

SMALL_CHAT_TEMPLATE = (
    """\
{%- set system = messages[0]['content'] if messages and messages[0]['role'] == 'system' else '' %}
{%- if system or tools %}
{{- '<|im_start|>system\\n' + system }}
{%- if tools %}
{{- ('\\n\\n' if system else '') + """
    + repr(_TOOLS_HEAD)
    + """ }}
{%- for tool in tools %}{{- tool | tojson + '\\n' }}{%- endfor %}
{{- '"""
    + _TOOLS_TAIL
    + """' }}
{%- endif %}
{{- '<|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
{%- if message['role'] == 'system' and loop.first %}
{%- elif message['role'] == 'tool' %}
{{- '<|im_start|>user\\n<tool_response>\\n' + message['content'] + '\\n</tool_response><|im_end|>\\n' }}
{%- else %}
{{- '<|im_start|>' + message['role'] + '\\n' + (message['content'] or '') }}
{%- for call in message['tool_calls'] or [] %}
{%- set function = call['function'] or call %}
{%- set arguments = function['arguments'] %}
{{- '\\n' if message['content'] or not loop.first }}
{{- '<tool_call>\\n{"name": ' + function['name'] | tojson + ', "arguments": ' }}
{{- (arguments if arguments is string else arguments | tojson) + '}\\n</tool_call>' }}
{%- endfor %}
{{- '<|im_end|>\\n' }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}
"""
)
"""ChatML with Hermes tools: each schema and each call on one line; reasoning of earlier turns stays."""


def tools_as_text(messages: Sequence[Message], tools: Sequence[ToolSchema]) -> list[Message]:
    """The conversation with the tools described in its system message, for templates that know no tools."""
    schemas = "".join(_json(tool) + "\n" for tool in tools)
    text = _TOOLS_HEAD + schemas + _TOOLS_TAIL
    if messages and messages[0]["role"] == "system":
        return [{**messages[0], "content": f"{messages[0]['content']}\n\n{text}"}, *messages[1:]]
    return [{"role": "system", "content": text}, *messages]


def calls_as_text(message: Message) -> Message:
    """A message whose tool calls or tool result are plain text, for templates that know no tools."""
    content = message.get("content") or ""
    if message["role"] == "tool":
        return {"role": "user", "content": f"<tool_response>\n{content}\n</tool_response>"}
    calls = [_call_text(call.get("function", call)) for call in message.get("tool_calls") or ()]
    return {"role": message["role"], "content": "\n".join(filter(None, [content, *calls]))}


def _call_text(function: Mapping[str, Any]) -> str:
    arguments = function["arguments"]
    text = arguments if isinstance(arguments, str) else _json(arguments)
    return f'<tool_call>\n{{"name": {_json(function["name"])}, "arguments": {text}}}\n</tool_call>'


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
