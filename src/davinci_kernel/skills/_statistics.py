"""What each skill is worth, measured: rollouts with it against the null scheme of the same tasks."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError, computed_field

from davinci_kernel.errors import UserError

from ._atomic import write_atomically


class SkillStats(BaseModel):
    """Counts and means of one skill. Rewards are whatever one number per rollout the caller uses.

    The uplift is paired: per task, the mean reward of the rollouts with the skill minus that of the null scheme; then
    the mean over tasks with its standard error. A skill that shares a scheme with others is credited with the scheme.
    """

    model_config = ConfigDict(frozen=True)
    offered: int = 0
    """Tasks whose selection agent saw the skill."""
    selected: int = 0
    """Schemes that contained it."""
    rollouts: int = 0
    """Rollouts with it that have a reward."""
    reward_sum: float = 0.0
    paired_tasks: int = 0
    """Tasks with rewards both with the skill and in the null scheme."""
    null_mean: float = 0.0
    """Mean over the paired tasks of the null scheme's mean reward."""
    uplift_mean: float = 0.0
    uplift_m2: float = 0.0
    """Sum of squared deviations of the tasks' uplifts from their mean (Welford)."""

    @computed_field  # type: ignore[prop-decorator]
    @property
    def mean_reward(self) -> float | None:
        """Over all rollouts with the skill."""
        return self.reward_sum / self.rollouts if self.rollouts else None

    @computed_field  # type: ignore[prop-decorator]
    @property
    def null_reward(self) -> float | None:
        """Of the same tasks' null schemes."""
        return self.null_mean if self.paired_tasks else None

    @computed_field  # type: ignore[prop-decorator]
    @property
    def uplift(self) -> float | None:
        return self.uplift_mean if self.paired_tasks else None

    @computed_field  # type: ignore[prop-decorator]
    @property
    def uplift_error(self) -> float | None:
        """Standard error of the uplift; None for fewer than two tasks."""
        n = self.paired_tasks
        return math.sqrt(self.uplift_m2 / (n - 1) / n) if n > 1 else None

    def with_task(self, schemes: int, rewards: Sequence[float], null_rewards: Sequence[float]) -> SkillStats:
        """These statistics after one more task, in `schemes` schemes of which the skill was selected."""
        update: dict[str, Any] = {
            "selected": self.selected + schemes,
            "rollouts": self.rollouts + len(rewards),
            "reward_sum": self.reward_sum + math.fsum(rewards),
        }
        if rewards and null_rewards:
            null, n = fmean(null_rewards), self.paired_tasks + 1
            uplift = fmean(rewards) - null
            delta = uplift - self.uplift_mean
            mean = self.uplift_mean + delta / n
            update |= {
                "paired_tasks": n,
                "null_mean": self.null_mean + (null - self.null_mean) / n,
                "uplift_mean": mean,
                "uplift_m2": self.uplift_m2 + delta * (uplift - mean),
            }
        return self.model_copy(update=update)


class SkillStatistics:
    """Statistics of all skills of a run, by name."""

    def __init__(self) -> None:
        self._skills: dict[str, SkillStats] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """Skills with statistics, in the order of first sight."""
        return tuple(self._skills)

    def get(self, name: str) -> SkillStats:
        """A skill's statistics; all zero for a skill never offered."""
        return self._skills.get(name, SkillStats())

    def record_task(
        self,
        offered: Iterable[str],
        schemes: Iterable[tuple[Sequence[str], Sequence[float]]],
        null_rewards: Sequence[float],
    ) -> None:
        """Add one task of one step.

        Args:
            offered: names that the selection agent saw.
            schemes: per scheme but the null scheme: its skills' names and one reward per rollout (rollouts lost to
                infrastructure are left out).
            null_rewards: one reward per rollout of the null scheme.
        """
        for name in dict.fromkeys(offered):
            stats = self.get(name)
            self._skills[name] = stats.model_copy(update={"offered": stats.offered + 1})
        rewards: dict[str, list[float]] = {}
        counts: dict[str, int] = {}
        for names, scheme_rewards in schemes:
            for name in dict.fromkeys(names):
                counts[name] = counts.get(name, 0) + 1
                rewards.setdefault(name, []).extend(scheme_rewards)
        for name, count in counts.items():
            self._skills[name] = self.get(name).with_task(count, rewards[name], null_rewards)

    def state_dict(self) -> dict[str, Any]:
        """JSON-able state, derived means included for readers."""
        return {"skills": {name: stats.model_dump() for name, stats in self._skills.items()}}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from `state_dict()`. Raises pydantic's ValidationError or KeyError for another kind of object."""
        self._skills = {name: SkillStats.model_validate(stats) for name, stats in state["skills"].items()}

    def save(self, path: Path) -> None:
        """Write ``stats.json`` atomically."""
        write_atomically(path, json.dumps(self.state_dict(), indent=1) + "\n")

    @classmethod
    def load(cls, path: Path) -> SkillStatistics:
        """Read ``stats.json``; no file gives empty statistics (published libraries have none).

        Raises:
            UserError: the file is not one that `save` wrote.
        """
        statistics = cls()
        if path.exists():
            try:
                statistics.load_state_dict(json.loads(path.read_text(encoding="utf-8")))
            except (ValidationError, ValueError, KeyError, TypeError, AttributeError):
                raise UserError(f"{path}: not skill statistics; remove the file to start anew") from None
        return statistics
