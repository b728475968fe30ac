"""Cold-start rows as parquet: `messages`, `tools`, `enable_thinking` (the published layout), and our `kind`."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from davinci_kernel.errors import UserError

from ._types import Message, ToolSchema


@dataclass(frozen=True)
class Row:
    """One conversation. `kind`: policy, policy_skill, selection, summary, summary_retrieval, or `unknown`."""

    messages: list[Message]
    tools: list[ToolSchema] = field(default_factory=list)
    kind: str = "unknown"
    enable_thinking: bool = False


def write_rows(rows: Sequence[Row], path: str | Path) -> None:
    """Write parquet by way of a temporary file. Messages and tools are JSON strings, so that any nesting survives."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.table(
        {
            "messages": [json.dumps(row.messages) for row in rows],
            "tools": [json.dumps(row.tools) for row in rows],
            "enable_thinking": [row.enable_thinking for row in rows],
            "kind": [row.kind for row in rows],
        }
    )
    partial = path.with_name(path.name + ".partial")
    pq.write_table(table, partial)
    os.replace(partial, path)


def read_rows(path: str | Path) -> list[Row]:
    """Read parquet whose `messages` and `tools` are JSON strings or nested lists (both are published).

    Raises:
        UserError: no such file, not parquet, no `messages` column.
    """
    if not Path(path).is_file():
        raise UserError(f"{path}: no such file; write one with `davinci sft build`")
    try:
        table = pq.read_table(path)
    except pa.ArrowInvalid as error:
        raise UserError(f"{path}: not a parquet file ({str(error).splitlines()[0]})") from None
    if "messages" not in table.column_names:
        raise UserError(f"{path}: no column `messages`; it has {', '.join(table.column_names)}")
    rows = []
    for record in table.to_pylist():
        messages, tools = _decoded(record["messages"]), _decoded(record.get("tools"))
        rows.append(Row(messages, tools, record.get("kind") or "unknown", bool(record.get("enable_thinking"))))
    return rows


def _decoded(value: Any) -> list[dict[str, Any]]:
    """A JSON string or a nested list, whose structs carry every key of every entry: absent ones come back as None."""
    entries = json.loads(value) if isinstance(value, str) and value else value or []
    return [{key: item for key, item in entry.items() if item is not None} for entry in entries]


def conversation_texts(rows: Sequence[Row]) -> list[str]:
    """Everything that a tokenizer should know: each message's text, and tools and calls as their JSON."""
    texts = []
    for row in rows:
        texts += [json.dumps(tool) for tool in row.tools]
        for message in row.messages:
            texts.append(message.get("content") or "")
            texts += [json.dumps(call["function"]) for call in message.get("tool_calls", [])]
    return texts
