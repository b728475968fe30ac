"""Reads a run directory. Every part may be missing: a run may be young, without skills, or not graded yet."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from davinci_kernel.errors import UserError
from davinci_kernel.grading import GradeSummary, read_summary
from davinci_kernel.skills import Skill, SkillLibrary, SkillStatistics, snapshots


@dataclass(frozen=True)
class RunData:
    """What the report shows of a run, rollouts apart.

    Attributes:
        config: the resolved configuration as nested mappings; empty if unknown.
        phases: seconds by phase.
        metrics: one flat mapping per step, in order.
        grades: summaries by label, in the order in which they were finished.
        tasks: rows of ``tasks.jsonl`` by task id.
    """

    root: Path
    config: dict[str, Any]
    config_text: str
    phases: dict[str, float]
    metrics: list[dict[str, Any]]
    grades: dict[str, GradeSummary]
    tasks: dict[str, dict[str, Any]]
    skills: tuple[Skill, ...]
    statistics: SkillStatistics


def read_run(root: Path) -> RunData:
    """Everything but the rollouts.

    Raises:
        UserError: no such folder, a folder that is not a run, or a damaged file (named).
    """
    if not root.is_dir():
        raise UserError(f"{root}: no such run directory")
    parts = ("config.yaml", "metrics.jsonl", "rollouts", "skills", "grades", "tasks.jsonl")
    if not any((root / part).exists() for part in parts):
        raise UserError(f"{root}: not a run directory: none of {', '.join(parts)} is there")
    config_text = _text(root / "config.yaml")
    return RunData(
        root=root,
        config=_config(root / "config.yaml", config_text),
        config_text=config_text,
        phases=_phases(root / "phases.json"),
        metrics=read_rows(root / "metrics.jsonl"),
        grades=_grades(root / "grades"),
        tasks={row.get("task_id", ""): row for row in read_rows(root / "tasks.jsonl")},
        skills=SkillLibrary.load(root / "skills").skills if snapshots(root / "skills") else (),
        statistics=SkillStatistics.load(root / "skills" / "stats.json"),
    )


def read_rows(path: Path) -> list[dict[str, Any]]:
    """JSON objects of a file, one a line. A torn last line (the run is alive, or was killed) is left out."""
    return parse_rows(_text(path), path)


def parse_rows(text: str, path: Path) -> list[dict[str, Any]]:
    """`read_rows` of a text; `path` names it in errors."""
    lines = text.split("\n")
    rows = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError:
            if number == len(lines):
                break
            raise UserError(f"{path}:{number}: not JSON; remove the line") from None
        if not isinstance(row, dict):
            raise UserError(f"{path}:{number}: expected a JSON object; remove the line")
        rows.append(row)
    return rows


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""


def _config(path: Path, text: str) -> dict[str, Any]:
    try:
        config = yaml.safe_load(text) or {}
    except yaml.YAMLError:
        config = None
    if not isinstance(config, dict):
        raise UserError(f"{path}: not a YAML mapping")
    return config


def _phases(path: Path) -> dict[str, float]:
    try:
        return {name: float(seconds) for name, seconds in json.loads(_text(path) or "{}").items()}
    except (ValueError, TypeError, AttributeError):
        raise UserError(f"{path}: expected an object of seconds by phase") from None


def _grades(folder: Path) -> dict[str, GradeSummary]:
    found = {path.parent.name: read_summary(path) for path in sorted(folder.glob("*/summary.json"))}
    return dict(sorted(found.items(), key=lambda item: item[1].finished))
