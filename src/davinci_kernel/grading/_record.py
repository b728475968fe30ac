"""The files of a grading run: ``grade.json`` (its caliber), ``turns.jsonl`` (a line per finished turn, from which an
interrupted episode continues), ``results.jsonl`` (a row per finished episode), ``summary.json``."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from davinci_kernel.errors import UserError
from davinci_kernel.rollout import Turn

from ._types import GradeRow, GradeSummary, Spent

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
        stored = read_json(path)
        different = [name for name in caliber if stored.get(name) != caliber[name]]
        if different:
            raise UserError(
                f"{path}: graded with another {', '.join(different)}; numbers would not compare: choose another out directory"
            )
        return
    out_dir.mkdir(parents=True, exist_ok=True)
    _write(path, caliber)


class TurnRecord(BaseModel):
    """One line of ``turns.jsonl``: a finished turn with its whole verdict.

    `turn` is without prompt ids and log-probabilities: a resumed episode renders the prompt again.
    """

    model_config = ConfigDict(frozen=True)
    task_id: str
    sample: int
    skills: tuple[str, ...] = ()
    spent: Spent = Spent()
    turn: Turn


LineT = TypeVar("LineT", bound=BaseModel)


class AppendLog(Generic[LineT]):
    """An append-only file of JSON lines: what was appended survives a kill; a torn last line is cut off.

    Raises:
        UserError: a line that is no `schema`, as ``file:line``.
    """

    def __init__(self, path: Path, schema: type[LineT]) -> None:
        text = path.read_bytes() if path.exists() else b""
        whole = text[: text.rfind(b"\n") + 1]
        self.lines: list[LineT] = []
        for number, line in enumerate(whole.decode("utf-8", "replace").split("\n")[:-1], start=1):
            try:
                self.lines.append(schema.model_validate_json(line))
            except ValidationError:
                raise UserError(
                    f"{path}:{number}: not a line of a grading run; remove it or choose another out directory"
                ) from None
        self._file = path.open("ab")
        self._file.truncate(len(whole))

    def append(self, line: LineT) -> None:
        self._file.write(line.model_dump_json().encode() + b"\n")
        self._file.flush()
        self.lines.append(line)

    def close(self) -> None:
        self._file.close()


def newest_rows(lines: Iterable[GradeRow]) -> dict[Pair, GradeRow]:
    """Rows by (task, sample); of two, the later: an episode lost to infrastructure was repeated."""
    return {(row.task_id, row.sample): row for row in lines}


def read_rows(path: Path) -> list[GradeRow]:
    """The rows of a ``results.jsonl``, newest of each pair, without opening it for writing; a torn last line is left out.

    Raises:
        UserError: no such file, or a line that is no row.
    """
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        raise UserError(f"{path}: no such file; expected the directory of a grading run") from None
    rows = []
    for number, line in enumerate(text.split("\n")[:-1], start=1):
        try:
            rows.append(GradeRow.model_validate_json(line))
        except ValidationError as error:
            raise UserError(f"{path}:{number}: not a graded row: {error.errors()[0]['msg']}") from None
    return list(newest_rows(rows).values())


def read_caliber(out_dir: Path) -> dict[str, Any]:
    """The ``grade.json`` of a grading run. Raises UserError for another folder."""
    return read_json(out_dir / "grade.json")


def write_summary(out_dir: Path, summary: GradeSummary) -> None:
    """Write ``summary.json`` atomically."""
    _write(out_dir / "summary.json", summary.to_json())


def read_summary(path: Path) -> GradeSummary:
    """Read a ``summary.json``. Raises UserError for another kind of file."""
    try:
        return GradeSummary.from_json(read_json(path))
    except ValidationError as error:
        first = error.errors()[0]
        raise UserError(f"{path}: not a grading summary: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file. Raises UserError for another kind of file."""
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
