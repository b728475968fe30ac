"""The files of a grading run: ``grade.json`` (its caliber), ``results.jsonl`` (a row per episode), ``summary.json``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from davinci_kernel.errors import UserError

from ._types import GradeRow, GradeSummary

Pair = tuple[str, int]
"""(task_id, sample)."""


def claim(out_dir: Path, caliber: dict[str, Any]) -> None:
    """Make `out_dir` a run of this caliber, or check that it is one.

    Raises:
        UserError: the directory holds rows of another caliber; the message names the first field that differs.
    """
    path = out_dir / "grade.json"
    caliber = json.loads(json.dumps(caliber))
    if path.exists():
        stored = _read_json(path)
        different = [name for name in caliber if stored.get(name) != caliber[name]]
        if different:
            raise UserError(
                f"{path}: graded with another {', '.join(different)}; numbers would not compare: choose another out directory"
            )
        return
    out_dir.mkdir(parents=True, exist_ok=True)
    _write(path, caliber)


class RowLog:
    """Append-only ``results.jsonl``: a row that was appended survives a kill; a torn last line is cut off.

    A pair may be appended again (an episode lost to infrastructure is repeated): its newest row counts.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.rows: dict[Pair, GradeRow] = {}
        text = path.read_bytes() if path.exists() else b""
        whole = text[: text.rfind(b"\n") + 1]
        for number, line in enumerate(whole.decode("utf-8", "replace").split("\n")[:-1], start=1):
            try:
                row = GradeRow.model_validate_json(line)
            except ValidationError:
                raise UserError(
                    f"{path}:{number}: not a graded row; remove the line or choose another out directory"
                ) from None
            self.rows[row.task_id, row.sample] = row
        self._file = path.open("ab")
        self._file.truncate(len(whole))

    def append(self, row: GradeRow) -> None:
        self._file.write(row.model_dump_json().encode() + b"\n")
        self._file.flush()
        self.rows[row.task_id, row.sample] = row

    def close(self) -> None:
        self._file.close()


def write_summary(out_dir: Path, summary: GradeSummary) -> None:
    """Write ``summary.json`` atomically."""
    _write(out_dir / "summary.json", summary.to_json())


def read_summary(path: Path) -> GradeSummary:
    """Read a ``summary.json``. Raises UserError for another kind of file."""
    try:
        return GradeSummary.from_json(_read_json(path))
    except ValidationError as error:
        first = error.errors()[0]
        raise UserError(f"{path}: not a grading summary: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None


def _read_json(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except ValueError:
        raise UserError(f"{path}: not a JSON file") from None
    if not isinstance(data, dict):
        raise UserError(f"{path}: expected a JSON object")
    return data


def _write(path: Path, data: dict[str, Any]) -> None:
    partial = path.with_name(f"{path.name}.partial")
    partial.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    partial.replace(path)
