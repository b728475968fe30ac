"""The `davinci` command. One thin module per subcommand; heavy imports happen inside the commands."""

from __future__ import annotations

import importlib
import sys

import typer

from davinci_kernel import __version__
from davinci_kernel.errors import EvaluatorError, UserError

app = typer.Typer(
    name="davinci",
    help="Teach language models to write fast GPU kernels, and prove that the kernels are right and fast.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(value: bool) -> None:
    if value:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _root(version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print version.")):
    pass


COMMANDS = ("evaluate", "tasks", "skills", "sft", "train", "grade", "report", "doctor", "gym", "llm", "quickstart")
"""Modules of this package; each defines `register(app)`."""

for _name in COMMANDS:
    importlib.import_module(f"{__name__}.{_name}").register(app)


def main() -> None:
    """Entry point: exit code 2 for bad input, 3 for a failed evaluator, 130 for Ctrl-C."""
    try:
        app()
    except UserError as error:
        print(f"davinci: {error}", file=sys.stderr)
        sys.exit(2)
    except EvaluatorError as error:
        print(f"davinci: evaluator failed: {error}", file=sys.stderr)
        sys.exit(3)
    except KeyboardInterrupt:
        print("davinci: interrupted", file=sys.stderr)
        sys.exit(130)
