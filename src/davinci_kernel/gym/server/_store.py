"""`TaskStore`: accepted tasks and their results in one SQLite file, so that a killed server loses none."""

from __future__ import annotations

import fcntl
import sqlite3
from dataclasses import dataclass
from pathlib import Path

from davinci_kernel.errors import UserError

from .._types import Verdict
from .._wire import EvaluationRequest, TaskState, state_of

_SCHEMA = """
CREATE TABLE IF NOT EXISTS tasks (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    task_id TEXT NOT NULL UNIQUE,
    request TEXT NOT NULL,
    key TEXT NOT NULL,
    state TEXT NOT NULL,
    generation INTEGER NOT NULL DEFAULT 0,
    submitted REAL NOT NULL,
    started REAL,
    completed REAL,
    verdict TEXT);
CREATE INDEX IF NOT EXISTS unfinished ON tasks (number) WHERE completed IS NULL;
CREATE INDEX IF NOT EXISTS verdicts ON tasks (key) WHERE state = 'completed';
CREATE INDEX IF NOT EXISTS finished ON tasks (completed) WHERE completed IS NOT NULL;
"""


@dataclass(frozen=True)
class StoredTask:
    """A task on record.

    Attributes:
        number: order of submission.
        key: what is judged and how; see `EvaluationRequest.key`.
        generation: how often a refresh has discarded an earlier result.
        submitted, started, completed: seconds since 1970.
    """

    number: int
    task_id: str
    request: EvaluationRequest
    key: str
    state: TaskState
    generation: int
    submitted: float
    started: float | None
    completed: float | None
    verdict: Verdict | None


class TaskStore:
    """An SQLite file (WAL), held by one server at a time.

    A write that has returned survives the death of the process. Every unfinished task is `pending` on record, also while
    it is judged: what was under way when the server died is waiting when it comes back.

    Raises:
        UserError: the file is no database, or another server holds it.
    """

    def __init__(self, path: str | Path):
        self.path = Path(path)
        self._lock = None
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._lock = open(f"{self.path}.lock", "w")  # noqa: SIM115
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(
                f"--database {path}: another server is using it; give each server a file of its own"
            ) from None
        except OSError as error:
            raise UserError(f"--database {path}: {error.strerror}; choose a file that can be written") from None
        try:
            self._database = sqlite3.connect(self.path)
            self._database.execute("PRAGMA journal_mode=WAL")
            self._database.execute("PRAGMA synchronous=NORMAL")
            self._database.executescript(_SCHEMA)
        except sqlite3.Error as error:
            raise UserError(f"--database {path}: {error}; choose another file") from None

    def get(self, task_id: str) -> StoredTask | None:
        row = self._database.execute(f"SELECT {_COLUMNS} FROM tasks WHERE task_id=?", (task_id,)).fetchone()
        return None if row is None else _stored(row)

    def unfinished(self) -> list[StoredTask]:
        """In the order of submission."""
        rows = self._database.execute(f"SELECT {_COLUMNS} FROM tasks WHERE completed IS NULL ORDER BY number")
        return [_stored(row) for row in rows]

    def recent(self, count: int) -> list[StoredTask]:
        """The latest results, newest first."""
        rows = self._database.execute(
            f"SELECT {_COLUMNS} FROM tasks WHERE completed IS NOT NULL ORDER BY completed DESC LIMIT ?", (count,)
        )
        return [_stored(row) for row in rows]

    def counts(self) -> dict[str, int]:
        """Tasks by state, over the file's life."""
        return dict(self._database.execute("SELECT state, COUNT(*) FROM tasks GROUP BY state").fetchall())

    def add(self, tasks: list[tuple[EvaluationRequest, str]], now: float) -> None:
        """Accept requests with their keys, all or none; a finished task of the same id begins anew."""
        with self._database:
            for request, key in tasks:
                self._database.execute(
                    "INSERT INTO tasks (task_id, request, key, state, submitted) VALUES (?, ?, ?, 'pending', ?) "
                    "ON CONFLICT (task_id) DO UPDATE SET request=excluded.request, key=excluded.key, state='pending', "
                    "generation=generation+1, submitted=excluded.submitted, started=NULL, completed=NULL, verdict=NULL "
                    "WHERE completed IS NOT NULL",
                    (request.task_id, request.model_dump_json(), key, now),
                )

    def start(self, task_id: str, now: float) -> None:
        self._change("UPDATE tasks SET started=? WHERE task_id=? AND completed IS NULL", (now, task_id))

    def finish(self, task_id: str, generation: int, verdict: Verdict, now: float) -> bool:
        """Record the result; False if this generation of the task has one, or was cancelled."""
        changed = self._change(
            "UPDATE tasks SET state=?, completed=?, verdict=? WHERE task_id=? AND generation=? AND completed IS NULL",
            (state_of(verdict), now, verdict.model_dump_json(), task_id, generation),
        )
        return changed == 1

    def cancel(self, task_id: str, now: float) -> bool:
        """Give up an unfinished task; False if there is none."""
        changed = self._change(
            "UPDATE tasks SET state='cancelled', completed=? WHERE task_id=? AND completed IS NULL", (now, task_id)
        )
        return changed == 1

    def verdict_of(self, key: str) -> Verdict | None:
        """The latest verdict on a candidate that was judged under this key."""
        row = self._database.execute(
            "SELECT verdict FROM tasks WHERE key=? AND state='completed' ORDER BY completed DESC LIMIT 1", (key,)
        ).fetchone()
        return None if row is None else Verdict.model_validate_json(row[0])

    def forget_before(self, then: float) -> int:
        """Drop results that are older; returns how many."""
        return self._change("DELETE FROM tasks WHERE completed < ?", (then,))

    def close(self) -> None:
        self._database.close()
        if self._lock is not None:
            self._lock.close()

    def _change(self, statement: str, values: tuple) -> int:
        with self._database:
            return self._database.execute(statement, values).rowcount


_COLUMNS = "number, task_id, request, key, state, generation, submitted, started, completed, verdict"


def _stored(row: tuple) -> StoredTask:
    number, task_id, request, key, state, generation, submitted, started, completed, verdict = row
    return StoredTask(
        number=number,
        task_id=task_id,
        request=EvaluationRequest.model_validate_json(request),
        key=key,
        state=state,
        generation=generation,
        submitted=submitted,
        started=started,
        completed=completed,
        verdict=None if verdict is None else Verdict.model_validate_json(verdict),
    )
