"""What a rollout produces: `Scheme`, `Turn`, `Trajectory`, and the `Sample` rows that trainers see."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from davinci_kernel.gym import Verdict
from davinci_kernel.skills import Skill

Agent = Literal["policy", "selection", "summary"]


class Scheme(BaseModel):
    """A set of skills that policy rollouts get. `index` counts selection inferences; the null scheme is the last."""

    model_config = ConfigDict(frozen=True)
    index: int
    skills: tuple[Skill, ...] = ()
    is_null: bool = False
    """The null scheme: no skills by design (an unparsable selection has none by failure)."""

    @property
    def pool_key(self) -> tuple[str, ...]:
        """Schemes with the same set of skills share one pool for the selection reward."""
        return tuple(sorted(s.name for s in self.skills))


class Turn(BaseModel):
    """One policy turn: prompt (whole history), answer, verdict, reward."""

    model_config = ConfigDict(frozen=True)
    index: int
    prompt_ids: tuple[int, ...] = ()
    response_ids: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()
    response: str = ""
    code: str | None = None
    """The extracted candidate module; None where the answer held none."""
    verdict: Verdict
    reward: float | None = None
    """None where the row must be dropped (INFRA_ERROR, INVALID_REFERENCE)."""
    finish_reason: str = "stop"
    usage: dict[str, float] = Field(default_factory=dict)
    """Tokens of the request: ``prompt_tokens``, ``completion_tokens``."""
    generate_seconds: float = 0.0
    """Wall time from the request to the answer, queueing included."""
    evaluate_seconds: float = 0.0
    """Wall time from the candidate to its verdict, queueing included; near 0 for a known verdict."""


class Trajectory(BaseModel):
    """One rollout of a scheme: up to T turns."""

    model_config = ConfigDict(frozen=True)
    task_id: str
    scheme: int
    rollout: int
    messages: tuple[dict[str, Any], ...] = ()
    """The whole conversation as chat messages."""
    turns: tuple[Turn, ...] = ()

    def best_turn(self) -> Turn | None:
        """The turn with the highest reward; the earliest of equals."""
        scored = [t for t in self.turns if t.reward is not None]
        return max(scored, key=lambda t: (t.reward, -t.index)) if scored else None


class Sample(BaseModel):
    """One training row: all that a trainer sees.

    Attributes:
        agent: which of the three agents produced it.
        group: rows that share a baseline share a group: policy: the task (turn separates further); selection: the
            task; summary: the trigger. Unique within a step.
        scheme, rollout, turn: position within the group (turn counts from 0; 0 for the single-turn agents).
        prompt_ids, response_ids: token ids as generated, never re-encoded.
        logprobs: log-probability of each response token at rollout time.
        reward: reward of this row alone.
        coverage, speedup, outcome: of the turn's verdict (policy rows), for PRS and metrics.
    """

    model_config = ConfigDict(frozen=True)
    agent: Agent
    task_id: str
    group: str
    scheme: int = 0
    rollout: int = 0
    turn: int = 0
    prompt_ids: tuple[int, ...]
    response_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    reward: float
    coverage: float | None = None
    speedup: float | None = None
    outcome: str | None = None
    finish_reason: str = "stop"
    extra: dict[str, Any] = Field(default_factory=dict)

    @property
    def sort_key(self) -> tuple[str, str, int, int, int]:
        """Deterministic order whatever the order of completion."""
        return (self.agent, self.group, self.scheme, self.rollout, self.turn)
