"""`davinci grade compare` and `davinci grade show`: finished grading runs as tables."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer

from davinci_kernel.errors import UserError

Format = Annotated[Literal["text", "markdown", "latex"], typer.Option("--format", help="Table for where.")]


def show(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Directories of finished grading runs.")],
    format: Format = "text",
    as_json: Annotated[bool, typer.Option("--json", help="The summaries as JSON on stdout.")] = False,
) -> None:
    """The figures of one or several runs side by side."""
    from rich.console import Console

    from davinci_kernel.grading import read_summary, render_latex, render_markdown, render_table

    summaries = dict(zip(_labels(runs), (read_summary(run / "summary.json") for run in runs), strict=True))
    if as_json:
        typer.echo(json.dumps({label: s.to_json() for label, s in summaries.items()}, indent=1))
    elif format == "text":
        Console().print(render_table(summaries))
    else:
        typer.echo((render_markdown if format == "markdown" else render_latex)(summaries), nl=False)


def compare(
    runs: Annotated[
        list[Path], typer.Argument(metavar="BASE RUN...", help="Directories of grading runs; the first is the base.")
    ],
    turn: Annotated[
        Literal["last", "best"], typer.Option(help="What counts of an episode: its last turn, or its own best.")
    ] = "last",
    tasks: Annotated[bool, typer.Option("--tasks", help="Every pair of tasks as well.")] = False,
    allow_different: Annotated[
        bool, typer.Option("--allow-different", help="Compare runs of different caliber.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Seed of intervals and permutations.")] = 0,
    format: Format = "text",
    as_json: Annotated[bool, typer.Option("--json", help="Everything as JSON on stdout.")] = False,
) -> None:
    """Wins and losses by task against the base run, with significance tests (p-values corrected by Holm).

    Refuses runs whose numbers do not compare: other settings, hardware or versions, or another task under the same name.
    """
    from rich.console import Console

    from davinci_kernel.grading import (
        caliber_differences,
        comparison_latex,
        comparison_markdown,
        read_caliber,
        read_rows,
        render_comparison,
        render_tasks,
    )
    from davinci_kernel.grading import compare as compare_runs

    if len(runs) < 2:
        raise UserError(f"grade compare {runs[0]}: expected at least two runs, the base first")
    labels = _labels(runs)
    calibers = [read_caliber(run) for run in runs]
    rows = [read_rows(run / "results.jsonl") for run in runs]
    differences = {}
    for run, label, caliber, its_rows in list(zip(runs, labels, calibers, rows, strict=True))[1:]:
        found = caliber_differences((calibers[0], rows[0]), (caliber, its_rows))
        if found and not allow_different:
            raise UserError(
                f"{runs[0]} and {run} are of different caliber ({'; '.join(found)}); --allow-different compares them anyway"
            )
        for difference in found:
            typer.echo(f"different caliber: {labels[0]} | {label}: {difference}", err=True)
        differences[label] = found
    others = list(zip(labels, rows, strict=True))
    comparisons = compare_runs(others[0], others[1:], reading=turn, different_caliber=differences, seed=seed)
    if not any(comparison.tasks for comparison in comparisons):
        raise UserError(f"{runs[0]}: no task in common with {', '.join(map(str, runs[1:]))}")
    if as_json:
        typer.echo(json.dumps([comparison.model_dump(mode="json") for comparison in comparisons], indent=1))
    elif format == "text":
        console = Console()
        console.print(render_comparison(comparisons))
        for comparison in comparisons:
            if tasks:
                console.print(render_tasks(comparison))
            if comparison.unpaired:
                typer.echo(f"{comparison.unpaired} tasks are graded in only one of {labels[0]} and {comparison.run}")
    else:
        typer.echo((comparison_markdown if format == "markdown" else comparison_latex)(comparisons), nl=False)


def _labels(runs: Sequence[Path]) -> list[str]:
    """Folder names where those are distinct, else the paths."""
    names = [run.resolve().name for run in runs]
    labels = names if len(set(names)) == len(names) else [str(run) for run in runs]
    if len(set(labels)) < len(labels):
        raise UserError(f"{max(labels, key=labels.count)}: given twice")
    return labels
