"""Verdicts on record: `RecordingGym` keeps every verdict of another gym, `ReplayGym` answers from such a record alone.

A request is (task, candidate, settings) and how many equal requests came before it, so that repeated measurements of the
same candidate replay in their order.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from davinci_kernel.errors import EvaluatorError
from davinci_kernel.tasks import Task

from ._types import Candidate, EvalSettings, Gym, Verdict

_SCHEMA = """CREATE TABLE IF NOT EXISTS verdicts (
    task TEXT, candidate TEXT, settings TEXT, occurrence INTEGER, verdict TEXT NOT NULL,
    PRIMARY KEY (task, candidate, settings, occurrence))"""
_Key = tuple[str, str, str]


class VerdictRecord:
    """An SQLite file of verdicts, open until `close`."""

    def __init__(self, path: str | Path):
        self.path = Path(path)
        self._database = sqlite3.connect(self.path)
        self._database.execute("PRAGMA journal_mode=WAL")
        self._database.execute(_SCHEMA)
        self._seen: Counter[_Key] = Counter()

    def next_occurrence(self, key: _Key) -> int:
        """How many requests for this key came before in this session."""
        self._seen[key] += 1
        return self._seen[key] - 1

    def get(self, key: _Key, occurrence: int) -> Verdict | None:
        row = self._database.execute(
            "SELECT verdict FROM verdicts WHERE task=? AND candidate=? AND settings=? AND occurrence=?",
            (*key, occurrence),
        ).fetchone()
        return None if row is None else Verdict.model_validate_json(row[0])

    def put(self, key: _Key, occurrence: int, verdict: Verdict) -> None:
        with self._database:
            self._database.execute(
                "INSERT OR REPLACE INTO verdicts VALUES (?, ?, ?, ?, ?)", (*key, occurrence, verdict.model_dump_json())
            )

    def close(self) -> None:
        self._database.close()


def _key(task: Task, candidate: Candidate, settings: EvalSettings | None) -> _Key:
    return task.content_hash, candidate.content_hash, "" if settings is None else settings.model_dump_json()


class RecordingGym:
    """A `Gym` that passes requests on and records the verdicts; one already on record is answered from there."""

    def __init__(self, inner: Gym, path: str | Path):
        self.inner, self.record = inner, VerdictRecord(path)

    async def evaluate(
        self, task: Task, candidate: Candidate, settings: EvalSettings | None = None, *, fresh: bool = False
    ) -> Verdict:
        key = _key(task, candidate, settings)
        occurrence = self.record.next_occurrence(key)
        verdict = self.record.get(key, occurrence)
        if verdict is None:
            verdict = await self.inner.evaluate(task, candidate, settings, fresh=fresh)
            self.record.put(key, occurrence, verdict)
        return verdict

    async def evaluate_many(
        self, pairs: Sequence[tuple[Task, Candidate]], settings: EvalSettings | None = None
    ) -> list[Verdict]:
        return list(await asyncio.gather(*(self.evaluate(task, candidate, settings) for task, candidate in pairs)))

    async def close(self) -> None:
        self.record.close()
        await self.inner.close()


class ReplayGym:
    """A `Gym` that only knows a record.

    Raises:
        EvaluatorError: from `evaluate`, for a request that is not on record.
    """

    def __init__(self, path: str | Path):
        self.record = VerdictRecord(path)

    async def evaluate(
        self, task: Task, candidate: Candidate, settings: EvalSettings | None = None, *, fresh: bool = False
    ) -> Verdict:
        key = _key(task, candidate, settings)
        occurrence = self.record.next_occurrence(key)
        verdict = self.record.get(key, occurrence)
        if verdict is None:
            raise EvaluatorError(
                f"{self.record.path}: no verdict number {occurrence} of a candidate for {task.task_id}"
            )
        return verdict

    async def evaluate_many(
        self, pairs: Sequence[tuple[Task, Candidate]], settings: EvalSettings | None = None
    ) -> list[Verdict]:
        return [await self.evaluate(task, candidate, settings) for task, candidate in pairs]

    async def close(self) -> None:
        self.record.close()
