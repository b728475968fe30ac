"""`davinci skills`: read a skill library."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from davinci_kernel.errors import UserError

if TYPE_CHECKING:
    from davinci_kernel.skills import SkillLibrary

commands = typer.Typer(help="List, show and search the skills of a library, with what was measured about them.")

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="Folder of global_step_<N>.jsonl, or a run directory.")]
Step = Annotated[int | None, typer.Option(help="Newest snapshot up to this step; default: the newest.")]
AsJson = Annotated[bool, typer.Option("--json", help="JSON on stdout instead of text.")]


@commands.command("list")
def list_skills(folder: Folder, step: Step = None, as_json: AsJson = False) -> None:
    """All skills: name, scope, verified speedup, tags, description."""
    library = _load(folder, step)
    if as_json:
        _print_json([skill.model_dump(mode="json") for skill in library.skills])
        return
    rows = [(s.name, s.scope, _number(s.verify_speedup, "x"), ", ".join(s.tags), s.description) for s in library.skills]
    _print_table(("name", "scope", "verified", "tags", "description"), rows, title=f"{len(library)} skills")


@commands.command()
def show(
    folder: Folder,
    name: Annotated[str, typer.Argument(help="Name of the skill, as `list` prints it.")],
    step: Step = None,
    as_json: AsJson = False,
) -> None:
    """One skill as Markdown, with its provenance and statistics."""
    from davinci_kernel.skills import SkillStatistics

    skill = _load(folder, step).get(name)
    if skill is None:
        raise UserError(f"{folder}: no skill {name!r}; `davinci skills list {folder}` prints the names")
    stats = SkillStatistics.load(_root(folder) / "stats.json").get(name)
    if as_json:
        _print_json({**skill.model_dump(mode="json"), "statistics": stats.model_dump(mode="json")})
        return
    lines = [
        f"# {skill.name}",
        "",
        skill.description,
        "",
        f"- scope: {skill.scope}",
        f"- tags: {', '.join(skill.tags)}",
    ]
    lines += [f"- verified speedup: {_number(skill.verify_speedup, 'x')}"]
    lines += [f"- offered {stats.offered}, selected {stats.selected}, rollouts {stats.rollouts}"]
    lines += [f"- uplift over the null scheme: {_uplift(stats.uplift, stats.uplift_error)}"]
    lines += [f"- {key}: {json.dumps(value)}" for key, value in skill.provenance.items()]
    typer.echo("\n".join([*lines, "", skill.content]))


@commands.command()
def search(
    folder: Folder,
    query: Annotated[str, typer.Argument(help="Words, or a file whose text is the query (a task's reference).")],
    k: Annotated[int, typer.Option("-k", min=1, help="Most results.")] = 20,
    step: Step = None,
    as_json: AsJson = False,
) -> None:
    """Skills by BM25 score: what the selection agent would be offered for a task."""
    view = _load(folder, step).view()
    text = (
        Path(query).read_text(encoding="utf-8", errors="replace")
        if len(query) < 256 and Path(query).is_file()
        else query
    )
    scores = dict(zip((s.name for s in view.skills), view.scores(text).tolist(), strict=True))
    found = view.recall(text, k, fallback=0)
    if as_json:
        _print_json([{"score": scores[s.name], **s.model_dump(mode="json")} for s in found])
        return
    rows = [(f"{scores[s.name]:.3f}", s.name, s.scope, s.description) for s in found]
    _print_table(("score", "name", "scope", "description"), rows, title=f"{len(found)} of {len(view)} skills")


@commands.command()
def stats(folder: Folder, step: Step = None, as_json: AsJson = False) -> None:
    """How often each skill was offered and selected, and its reward against the same tasks' null scheme."""
    from davinci_kernel.skills import SkillStatistics

    library = _load(folder, step)
    statistics = SkillStatistics.load(_root(folder) / "stats.json")
    if as_json:
        _print_json({s.name: statistics.get(s.name).model_dump(mode="json") for s in library.skills})
        return
    rows = []
    for skill in library.skills:
        row = statistics.get(skill.name)
        counts = (str(row.offered), str(row.selected), str(row.rollouts))
        rewards = (_number(row.mean_reward), _number(row.null_reward), _uplift(row.uplift, row.uplift_error))
        rows.append((skill.name, *counts, *rewards))
    _print_table(("name", "offered", "selected", "rollouts", "reward", "null reward", "uplift"), rows)


def register(app: typer.Typer) -> None:
    app.add_typer(commands, name="skills", no_args_is_help=True)


def _root(folder: Path) -> Path:
    return folder / "skills" if (folder / "skills").is_dir() else folder


def _load(folder: Path, step: int | None) -> SkillLibrary:
    from davinci_kernel.skills import SkillLibrary, snapshots

    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder")
    first = next(iter(snapshots(_root(folder))), None)
    if step is not None and first is not None and step < first:
        raise UserError(f"--step {step}: the first snapshot in {_root(folder)} is of step {first}")
    return SkillLibrary.load(_root(folder), step if first is not None else None)


def _number(value: float | None, unit: str = "") -> str:
    return "-" if value is None else f"{value:.2f}{unit}"


def _uplift(mean: float | None, error: float | None) -> str:
    if mean is None:
        return "-"
    return f"{mean:+.2f}" if error is None else f"{mean:+.2f} ± {error:.2f}"


def _print_json(value: Any) -> None:
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False))


def _print_table(columns: Sequence[str], rows: Sequence[Sequence[str]], title: str | None = None) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    Console().print(table)
