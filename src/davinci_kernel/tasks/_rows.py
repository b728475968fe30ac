"""Tasks from rows of tables, in the layouts that are published, and the row that we write."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from davinci_kernel.errors import UserError

from ._reference import require_reference
from ._task import Task


def task_from_row(row: Mapping[str, Any], where: str, fallback_id: str) -> Task:
    """Read one row.

    Layouts: ours (`task_id, name, level, code, entry_point, metadata`), KernelBench's (`level, problem_id, name, code`)
    and the published RL data's (`reward_model.ground_truth`, `entry_point`, `uuid`, `prompt`). A row without an id of
    its own gets `fallback_id`.

    Raises:
        UserError: no usable reference in the row; the message starts with `where`.
    """
    reward_model = row.get("reward_model")
    code = row.get("code") or (reward_model.get("ground_truth") if isinstance(reward_model, Mapping) else None)
    if not isinstance(code, str):
        raise UserError(f"{where}: no reference: expected a text column `code` or `reward_model.ground_truth`")
    entry_point = row.get("entry_point") or "Model"
    if not isinstance(entry_point, str):
        raise UserError(f"{where}: entry_point: expected the name of a class")
    require_reference(code, where, entry_point)
    level, problem = _integer(row, "level", where), _integer(row, "problem_id", where)
    metadata = row.get("metadata") or {}
    if isinstance(metadata, str):
        metadata = _parsed(metadata, where)
    if not isinstance(metadata, dict):
        raise UserError(f"{where}: metadata: expected an object")
    if problem is not None:
        metadata = {"problem_id": problem, **metadata}
    identity = row.get("task_id") or row.get("uuid")
    if not identity:
        identity = f"kernelbench/{level}/{problem}" if level is not None and problem is not None else fallback_id
    name = str(row.get("name") or identity)
    return Task(str(identity), code, name=name, level=level, entry_point=entry_point, metadata=metadata)


def row_from_task(task: Task) -> dict[str, Any]:
    """The JSON-able row that `task_from_row` reads back as an equal task."""
    return {
        "task_id": task.task_id,
        "name": task.name,
        "level": task.level,
        "code": task.code,
        "entry_point": task.entry_point,
        "metadata": task.metadata,
    }


def _integer(row: Mapping[str, Any], field: str, where: str) -> int | None:
    value = row.get(field)
    if value is None:
        return None
    try:
        return int(value)
    except (TypeError, ValueError):
        raise UserError(f"{where}: {field}: expected an integer, found {str(value)[:40]!r}") from None


def _parsed(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        raise UserError(f"{where}: metadata: not valid JSON") from None
