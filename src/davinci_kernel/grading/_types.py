"""What grading writes: one `GradeRow` per (task, sample), one `GradeSummary` per model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from davinci_kernel.gym import Outcome, Verdict


class GradedTurn(BaseModel):
    """The part of a turn's verdict that the metrics read, and the code it belongs to."""

    model_config = ConfigDict(frozen=True)
    turn: int
    """Counted from 0 over the whole episode, iterations included."""
    outcome: Outcome
    compiled: bool = False
    speedup: float | None = None
    speedup_interval: tuple[float, float] | None = None
    too_noisy: bool = False
    reference_ms: float | None = None
    kernel_ms: float | None = None
    hack: str | None = None
    coverage: float | None = None
    message: str = ""
    code: str | None = None

    @property
    def correct(self) -> bool:
        return self.outcome is Outcome.CORRECT

    @property
    def measured_speedup(self) -> float | None:
        """The speedup of a correct kernel; None where it is incorrect or too noisy to stand by."""
        return self.speedup if self.correct and not self.too_noisy else None

    @classmethod
    def of(cls, turn: int, verdict: Verdict, code: str | None) -> GradedTurn:
        """The graded part of a verdict."""
        shared = cls.model_fields.keys() & Verdict.model_fields.keys()
        return cls(turn=turn, code=code, **{name: getattr(verdict, name) for name in shared})


class Spent(BaseModel):
    """What something cost. Dollars are 0 where no price was given."""

    model_config = ConfigDict(frozen=True)
    prompt_tokens: float = 0.0
    completion_tokens: float = 0.0
    dollars: float = 0.0
    generate_seconds: float = 0.0
    """Waiting for the model, queueing included; concurrent requests add up."""
    evaluate_seconds: float = 0.0
    """Waiting for verdicts, likewise."""

    def __add__(self, other: Spent) -> Spent:
        return Spent(**{name: getattr(self, name) + getattr(other, name) for name in Spent.model_fields})


class Price(BaseModel):
    """Dollars per million tokens."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    prompt: float = Field(0.0, ge=0)
    completion: float = Field(0.0, ge=0)

    def of(self, usage: Mapping[str, float]) -> float:
        """Dollars for a completion's `usage`."""
        tokens = usage.get("prompt_tokens", 0.0) * self.prompt + usage.get("completion_tokens", 0.0) * self.completion
        return tokens / 1e6


class GradeRow(BaseModel):
    """One line of ``results.jsonl``: an episode of one task."""

    model_config = ConfigDict(frozen=True)
    task_id: str
    name: str = ""
    level: int | None = None
    problem_id: int | None = None
    """KernelBench's number within the level, where the task has one."""
    sample: int
    defective: bool = False
    """On the list of tasks that no verdict can referee (`davinci_kernel.tasks.known_defects`)."""
    skills: tuple[str, ...] = ()
    """Skills that the policy had in its prompt."""
    turns: tuple[GradedTurn, ...] = ()
    """Empty where the prompt was too long to be played: counts as incorrect."""
    spent: Spent = Spent()
    provenance: dict[str, Any] = Field(default_factory=dict)
    """Caliber (``task_hash`` and all but the task list of ``grade.json``), package versions, hardware, prices."""

    @property
    def fault(self) -> Outcome | None:
        """INFRA_ERROR or INVALID_REFERENCE if a turn ended so: such a row says nothing about the model."""
        return next((t.outcome for t in self.turns if not t.outcome.is_candidates_fault), None)

    @property
    def problem(self) -> str:
        """What pairs rows of two runs: KernelBench's level and number, else the task's id."""
        known = self.level is not None and self.problem_id is not None
        return f"kernelbench/{self.level}/{self.problem_id}" if known else self.task_id

    def last(self) -> GradedTurn | None:
        return self.turns[-1] if self.turns else None

    def at(self, turn: int) -> GradedTurn | None:
        """The `turn`-th turn (from 0); an episode that ended earlier stands by its last one."""
        return self.turns[min(turn, len(self.turns) - 1)] if self.turns else None

    def best(self, turns: int | None = None) -> GradedTurn | None:
        """The best of the first `turns` turns: correct before incorrect, then faster, then earlier."""
        return max(self.turns[:turns], key=lambda t: (t.correct, t.measured_speedup or 0.0, -t.turn), default=None)


class Estimate(BaseModel):
    """A figure with its 95 % interval (bootstrap over tasks) and the number of rows behind it.

    `n` = 0: there was nothing to take the figure of (for instance the speedup of no correct kernel); all are 0 then.
    """

    model_config = ConfigDict(frozen=True)
    value: float
    low: float
    high: float
    n: int


class TurnPoint(BaseModel):
    """Best-by-turn curve: the best of the first `turn` turns (counted from 1) of every episode."""

    model_config = ConfigDict(frozen=True)
    turn: int
    correct: Estimate
    fast_1: Estimate
    geomean_speedup: Estimate


class Counts(BaseModel):
    """Rows and what became of them. `graded` is the denominator of every share."""

    model_config = ConfigDict(frozen=True)
    tasks: int
    rows: int
    graded: int
    infra_errors: int
    invalid_references: int
    too_noisy: int
    defective_tasks: int = 0
    """Of `tasks`: on the list of defective ones."""
    turn_outcomes: dict[str, int] = Field(default_factory=dict)
    """Outcomes of all turns, faulty rows included."""

    @property
    def hack_share(self) -> float:
        """HACK among all turns that the candidate answers for."""
        faults = ("INFRA_ERROR", "INVALID_REFERENCE")
        answered = sum(times for outcome, times in self.turn_outcomes.items() if outcome not in faults)
        return self.turn_outcomes.get("HACK", 0) / answered if answered else 0.0


class Figures(BaseModel):
    """Metrics by name of the same rows, read in three ways."""

    model_config = ConfigDict(frozen=True)
    last: dict[str, Estimate]
    """The last turn's: ``fast_1.2``, ``fast_1.2_ge``, ``correct``, ``geomean_speedup`` ..."""
    best_turn: dict[str, Estimate] = Field(default_factory=dict)
    """Of one turn number for all episodes: the one with the highest fast_1, then correct, then the earliest."""
    best_turn_number: int = 0
    """That number, counted from 1; 0: no turns."""
    best: dict[str, Estimate]
    """Best of history: of each episode, its own best turn."""


class GradeSummary(Figures):
    """All figures of one grading run. ``summary.json`` is `to_json`: the last turn's metrics lie at its top level."""

    best_by_turn: tuple[TurnPoint, ...] = ()
    pass_at_k: dict[str, Estimate] = Field(default_factory=dict)
    """Chance that one of k samples is correct (last turn), unbiased, by k."""
    fast_1_at_k: dict[str, Estimate] = Field(default_factory=dict)
    """Chance that one of k samples is correct and faster than the reference (last turn), by k."""
    subsets: dict[str, Figures] = Field(default_factory=dict)
    """``without defective``, ``level 1``, ``level 1 without defective`` ..."""
    spent: Spent = Spent()
    n: Counts
    finished: str = ""
    """UTC time at which the run was complete."""

    def to_json(self) -> dict[str, Any]:
        """JSON-able object: ``{"fast_1": {value, low, high, n}, ..., "best": {...}, "n": {...}}``."""
        data = self.model_dump(mode="json")
        return {**data.pop("last"), **data}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> GradeSummary:
        """Inverse of `to_json`. Raises pydantic's ValidationError for another kind of object."""
        known = {name: value for name, value in data.items() if name in cls.model_fields}
        return cls.model_validate({**known, "last": {k: v for k, v in data.items() if k not in cls.model_fields}})
