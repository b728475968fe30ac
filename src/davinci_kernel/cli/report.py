"""`davinci report`: the HTML page of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    app.command("report")(report)


def report(
    run_dir: Annotated[Path, typer.Argument(metavar="RUN_DIR", help="A run directory, finished or not.")],
) -> None:
    """Write RUN_DIR/report.html: grades, learning curves, the skill library, rollouts to read. Prints its path."""
    from davinci_kernel.report import write_report

    typer.echo(write_report(run_dir))
