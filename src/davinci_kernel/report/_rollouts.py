"""Chooses the rollouts that a reader sees: a report of every row would not open in a browser."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from davinci_kernel.errors import UserError
from davinci_kernel.skills import Skill

from ._run_data import parse_rows

LIMIT = 60
_EXTREMES = 4
_STEP_FILE = re.compile(r"step_(\d+)\.jsonl\.gz")


@dataclass(frozen=True, order=True)
class RolloutKey:
    """One policy rollout, or one answer of a single-turn agent."""

    step: int
    task_id: str
    agent: str
    group: str
    scheme: int
    rollout: int

    @property
    def anchor(self) -> str:
        """Id of its element in the page."""
        raw = f"{self.agent}-{self.step}-{self.group}-{self.task_id}-{self.scheme}-{self.rollout}"
        return re.sub(r"[^A-Za-z0-9]+", "-", raw)


@dataclass(frozen=True)
class Rollout:
    """Rows of one key, by turn, why it was chosen, and the names of the skills that were learned from it."""

    key: RolloutKey
    rows: tuple[dict[str, Any], ...]
    reasons: tuple[str, ...]
    gave: tuple[str, ...]


@dataclass(frozen=True)
class _Outline:
    key: RolloutKey
    reward: float
    """The best of its turns."""


def step_files(run_dir: Path) -> dict[int, Path]:
    """``rollouts/step_N.jsonl.gz`` by step, ascending."""
    paths = (run_dir / "rollouts").glob("step_*.jsonl.gz")
    found = {int(match[1]): path for path in paths if (match := _STEP_FILE.fullmatch(path.name))}
    return dict(sorted(found.items()))


def choose_rollouts(run_dir: Path, skills: Sequence[Skill], limit: int = LIMIT) -> list[Rollout]:
    """At most `limit` rollouts: those that gave skills, the best and worst, and an even sample of the first, middle and
    last step; in the order of step, task, agent, scheme, rollout.

    Raises:
        UserError: a damaged rollout file (named).
    """
    files = step_files(run_dir)
    outlines = [outline for step, path in files.items() for outline in _outlines(step, _read(path))]
    by_reward = sorted((o for o in outlines if o.key.agent == "policy"), key=lambda o: (-o.reward, o.key))
    origins = {skill.name: found for skill in skills if (found := _origin(skill, by_reward))}
    wanted = [(key, f"gave the skill {name}") for name, key in origins.items()]
    wanted += [(outline.key, "best reward") for outline in by_reward[:_EXTREMES]]
    wanted += [(outline.key, "worst reward") for outline in by_reward[::-1][:_EXTREMES]]
    wanted += _sampled_steps(outlines, limit)
    reasons: dict[RolloutKey, list[str]] = {}
    for key, reason in wanted:
        if key in reasons or len(reasons) < limit:
            reasons.setdefault(key, []).append(reason)
    chosen = []
    for step in sorted({key.step for key in reasons}):
        rows = _by_key(step, _read(files[step]))
        for key in sorted(key for key in reasons if key.step == step):
            gave = tuple(name for name, source in origins.items() if source == key)
            chosen.append(Rollout(key, tuple(rows[key]), tuple(dict.fromkeys(reasons[key])), gave))
    return chosen


def _origin(skill: Skill, by_reward: Sequence[_Outline]) -> RolloutKey | None:
    """The policy rollout that the skill's provenance names; the task's best one where it names no rollout."""
    fields = ("step", "task_id", "group", "scheme", "rollout")
    wanted = {name: skill.provenance[name] for name in fields if skill.provenance.get(name) is not None}
    if not {"step", "task_id"} <= wanted.keys():
        return None
    return next((o.key for o in by_reward if all(getattr(o.key, name) == v for name, v in wanted.items())), None)


def _sampled_steps(outlines: Sequence[_Outline], limit: int) -> list[tuple[RolloutKey, str]]:
    """An even sample of each agent's rollouts in the first, middle and last step."""
    steps = sorted({outline.key.step for outline in outlines})
    if not steps:
        return []
    places = {"first step": steps[0], "middle step": steps[len(steps) // 2], "last step": steps[-1]}
    sampled = []
    for agent, count in (("summary", limit // 12), ("selection", limit // 12), ("policy", limit // 4)):
        for place, step in places.items():
            keys = sorted(o.key for o in outlines if o.key.step == step and o.key.agent == agent)
            sampled += [(key, place) for key in _evenly(keys, count)]
    return sampled


def _evenly(keys: Sequence[RolloutKey], count: int) -> list[RolloutKey]:
    if len(keys) <= count:
        return list(keys)
    return [keys[index * len(keys) // count] for index in range(count)]


def _outlines(step: int, rows: Iterable[dict[str, Any]]) -> list[_Outline]:
    return [
        _Outline(key, max(float(row.get("reward") or 0.0) for row in found))
        for key, found in _by_key(step, rows).items()
    ]


def _by_key(step: int, rows: Iterable[dict[str, Any]]) -> dict[RolloutKey, list[dict[str, Any]]]:
    grouped: dict[RolloutKey, list[dict[str, Any]]] = {}
    for row in rows:
        key = RolloutKey(
            step=step,
            task_id=str(row.get("task_id", "")),
            agent=str(row.get("agent", "policy")),
            group=str(row.get("group", "")),
            scheme=int(row.get("scheme") or 0),
            rollout=int(row.get("rollout") or 0),
        )
        grouped.setdefault(key, []).append(row)
    return {key: sorted(found, key=lambda row: row.get("turn") or 0) for key, found in grouped.items()}


def _read(path: Path) -> list[dict[str, Any]]:
    try:
        text = gzip.decompress(path.read_bytes()).decode("utf-8", "replace")
    except (OSError, EOFError, zlib.error):
        raise UserError(f"{path}: not a readable gzip file; remove it to report on the other steps") from None
    return parse_rows(text, path)
