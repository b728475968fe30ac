"""`write_report`: one self-contained page about a run. All text of models and tasks is escaped by the template."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files
from itertools import groupby
from pathlib import Path
from typing import Any

from jinja2 import Environment
from markupsafe import Markup
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from davinci_kernel import __version__
from davinci_kernel.grading import table_rows
from davinci_kernel.skills import SkillStats

from ._curves import learning_curves
from ._figures import fast_p_chart
from ._rollouts import Rollout, choose_rollouts, step_files
from ._run_data import RunData, read_run

_HIGHLIGHTS = (
    "model_path",
    "seed",
    "device",
    "tasks.source",
    "rl.steps",
    "rl.batch_tasks",
    "rl.learning_rate",
    "rollout.backend",
    "rollout.rollout_n",
    "rollout.max_turn",
    "skill.enable",
    "skill.k",
)
_TONES = {"CORRECT": "good", "HACK": "hack", "INFRA_ERROR": "neutral", "INVALID_REFERENCE": "neutral"}


def write_report(run_dir: Path) -> Path:
    """Write ``report.html`` into a run directory, from its files alone.

    Returns:
        The page's path.

    Raises:
        UserError: not a run directory, or a damaged file in it.
    """
    run_dir = Path(run_dir)
    page = render(read_run(run_dir), run_dir)
    path = run_dir / "report.html"
    partial = path.with_suffix(".html.partial")
    partial.write_text(page, encoding="utf-8")
    partial.replace(path)
    return path


def render(run: RunData, run_dir: Path) -> str:
    """The page as text."""
    package = files(__package__)
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {"python": _python, "figure": _figure}
    template = environment.from_string((package / "report.html.j2").read_text(encoding="utf-8"))
    rollouts = choose_rollouts(run_dir, run.skills)
    return template.render(
        run=run,
        name=run_dir.resolve().name,
        version=__version__,
        css=Markup((package / "report.css").read_text(encoding="utf-8") + _highlight_css()),
        script=Markup((package / "report.js").read_text(encoding="utf-8")),
        highlights=[(name, value) for name in _HIGHLIGHTS if (value := _lookup(run.config, name)) is not None],
        table=table_rows(run.grades) if run.grades else [],
        fast_p=Markup(fast_p_chart("fastp", run.grades)) if run.grades else None,
        curves=[(chart.title, Markup(chart.svg), chart.caption) for chart in learning_curves(run.metrics)],
        skills=_skills(run, rollouts),
        tasks_read=_by_task(run, rollouts),
        rollouts_shown=len(rollouts),
        steps_recorded=len(step_files(run_dir)),
        filters=_filters(rollouts),
    )


def _skills(run: RunData, rollouts: Sequence[Rollout]) -> list[dict[str, Any]]:
    """The library, most used first, with what was measured and the rollout that each skill came from."""
    origins = {name: rollout.key for rollout in rollouts for name in rollout.gave}
    entries: list[dict[str, Any]] = []
    for skill in run.skills:
        stats = run.statistics.get(skill.name)
        entries.append({"skill": skill, "stats": stats, "uplift": _uplift(stats), "origin": origins.get(skill.name)})
    return sorted(entries, key=lambda entry: -entry["stats"].selected)


def _uplift(stats: SkillStats) -> str:
    if stats.uplift is None:
        return "–"
    return f"{stats.uplift:+.2f}" + (f" ± {stats.uplift_error:.2f}" if stats.uplift_error is not None else "")


def _by_task(run: RunData, rollouts: Sequence[Rollout]) -> list[dict[str, Any]]:
    """Rollouts under their (step, task), with the turns as the page shows them."""
    sections = []
    for (step, task_id), found in groupby(rollouts, key=lambda r: (r.key.step, r.key.task_id)):
        entries = [{"key": r.key, "reasons": r.reasons, "turns": _turns(r)} for r in found]
        sections.append({"step": step, "task_id": task_id, "task": run.tasks.get(task_id), "rollouts": entries})
    return sections


def _turns(rollout: Rollout) -> list[dict[str, Any]]:
    turns = []
    before = ""
    for row in rollout.rows:
        verdict = row.get("verdict") or {}
        prompt = str(row.get("prompt") or "")
        continued = bool(before) and prompt.startswith(before)
        outcome = verdict.get("outcome")
        turns.append(
            {
                "row": row,
                "number": (row.get("turn") or 0) + 1,
                "verdict": verdict,
                "badge": outcome or "answer",
                "tone": _TONES.get(outcome, "bad") if outcome else "neutral",
                "prompt": prompt[len(before) :] if continued else prompt,
                "continued": continued,
            }
        )
        before = prompt
    return turns


def _filters(rollouts: Sequence[Rollout]) -> dict[str, list[Any]]:
    outcomes = {(row.get("verdict") or {}).get("outcome") for r in rollouts for row in r.rows}
    return {
        "agent": sorted({r.key.agent for r in rollouts}),
        "outcome": sorted(outcome for outcome in outcomes if outcome),
        "step": sorted({r.key.step for r in rollouts}),
    }


def _lookup(config: Mapping[str, Any], dotted: str) -> Any:
    value: Any = config
    for part in dotted.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _figure(value: Any, digits: int = 3) -> str:
    """A number at a fixed precision; a dash where there is none."""
    return f"{value:.{digits}f}" if isinstance(value, int | float) else "–"


def _python(code: str) -> Markup:
    """Highlighted Python; pygments escapes the text."""
    return Markup(highlight(code, PythonLexer(stripnl=False), HtmlFormatter(nowrap=True)))


def _highlight_css() -> str:
    light = HtmlFormatter(style="default").get_style_defs(".code")
    dark = HtmlFormatter(style="github-dark").get_style_defs(".code")
    return f"\n{light}\n@media (prefers-color-scheme: dark) {{\n{dark}\n}}\n.code {{ background: var(--inset); }}\n"
