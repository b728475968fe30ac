"""`davinci grade import` and `davinci grade export`: KernelBench's own run folders."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from davinci_kernel.errors import UserError


def import_run(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="KernelBench's runs/<name>, with eval_results.json.")
    ],
    out: Annotated[Path, typer.Option(help="Directory of the new grading run.")],
    baseline: Annotated[
        Path | None, typer.Option(metavar="FILE.json", help="KernelBench's baseline times, for speedups.")
    ] = None,
    level: Annotated[int | None, typer.Option(help="Level, where the kernels' file names do not say it.")] = None,
    model: Annotated[str, typer.Option(help="Name of the model, for the record.")] = "",
) -> None:
    """Read a KernelBench run as a grading run, to be shown and compared.

    Its verdicts are KernelBench's, so comparing it with a run judged here takes --allow-different.
    """
    from rich.console import Console

    from davinci_kernel.grading import BaselineTimes, import_kernelbench, render_table, write_run

    if out.exists():
        raise UserError(f"--out {out}: exists; choose another directory")
    rows = import_kernelbench(folder, BaselineTimes(baseline) if baseline else None, level)
    settings = {"evaluator": "KernelBench", "baseline": baseline.stem if baseline else None}
    caliber = {"model": model or folder.resolve().name, "settings": settings}
    summary = write_run(out, caliber, rows)
    Console().print(render_table({out.resolve().name: summary}))
    typer.echo(f"{len(rows)} samples written to {out}", err=True)


def export_run(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Directory of a grading run.")],
    out: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Where runs/ and results/timing/ go, such as a checkout.")
    ],
    turn: Annotated[
        Literal["last", "best"], typer.Option(help="What counts of an episode: its last turn, or its own best.")
    ] = "last",
    label: Annotated[str, typer.Option(help="Name of the folders; default: the run's.")] = "",
) -> None:
    """Write a grading run as KernelBench's folders: kernels, eval_results.json, and baseline times."""
    from davinci_kernel.grading import export_kernelbench, read_caliber, read_rows

    baseline = read_caliber(run).get("settings", {}).get("baseline") or "eager"
    rows = read_rows(run / "results.jsonl")
    for folder in export_kernelbench(rows, out, label or run.resolve().name, baseline, best=turn == "best"):
        typer.echo(folder)
