"""`davinci tasks`: look at tasks, write generated ones to a file, and find those that no tolerance can referee."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from davinci_kernel.errors import UserError

if TYPE_CHECKING:
    from davinci_kernel.tasks import Task

commands = typer.Typer(help="List, show, generate and audit tasks.")

Source = Annotated[
    str, typer.Argument(help="`suite`, `generator`, a KernelBench folder, a .py, .jsonl or .parquet file, or an HF id.")
]
Split = Annotated[str, typer.Option(help="Split of the generator (train, heldout) or of an HF data set.")]
Level = Annotated[list[int] | None, typer.Option(help="Keep this level; may be given several times.")]
Limit = Annotated[int, typer.Option(min=0, help="Tasks at most, after shuffling with --seed; 0: all (generator: 512).")]
Seed = Annotated[int, typer.Option(help="Seed of generation and shuffling.")]
Options = Annotated[
    list[str] | None,
    typer.Option("--option", "-o", metavar="KEY=VALUE", help="Generator or suite option, such as -o size=4."),
]


@commands.command("list")
def list_tasks(
    source: Source = "suite",
    split: Split = "train",
    level: Level = None,
    limit: Limit = 0,
    seed: Seed = 0,
    option: Options = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per line instead of a table.")] = False,
) -> None:
    """The tasks of a source: id, level, name, lines of code."""
    tasks = _load(source, split, level, limit, seed, option)
    tasks.sort(key=lambda task: (task.level or 0, source != "generator" and task.task_id))
    if as_json:
        typer.echo(_jsonl(tasks), nl=False)
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=f"{len(tasks)} tasks", title_justify="left")
    for column in ("task", "level", "name", "lines"):
        table.add_column(column, overflow="fold")
    for task in tasks:
        cells = (task.task_id, "-" if task.level is None else str(task.level), task.name)
        table.add_row(*map(Text, cells), str(task.code.rstrip().count("\n") + 1))
    Console().print(table)


@commands.command()
def show(
    task_id: Annotated[str, typer.Argument(metavar="TASK", help="Id or name of the task, as `list` prints it.")],
    source: Source = "suite",
    split: Split = "train",
    seed: Seed = 0,
    option: Options = None,
) -> None:
    """The reference code of one task."""
    found = [t for t in _load(source, split, None, 0, seed, option) if task_id in (t.task_id, t.name)]
    if not found:
        raise UserError(f"{source}: no task {task_id!r}; `davinci tasks list {source}` prints the ids")
    if len({task.content_hash for task in found}) > 1:
        raise UserError(f"{source}: {len(found)} tasks are called {task_id!r}; give an id, such as {found[0].task_id}")
    typer.echo(found[0].code, nl=False)


@commands.command()
def generate(
    out: Annotated[Path, typer.Argument(metavar="OUT.jsonl", help="File to write; replaced as a whole or not at all.")],
    count: Annotated[int, typer.Option(min=1, help="Tasks to generate.")] = 512,
    split: Split = "train",
    seed: Seed = 0,
    option: Options = None,
) -> None:
    """Write generated tasks as JSON lines, which every `tasks.source` reads."""
    if out.suffix != ".jsonl":
        raise UserError(f"{out}: expected a name that ends in .jsonl")
    if out.is_dir():
        raise UserError(f"{out}: is a directory, expected a file to write")
    tasks = _load("generator", split, None, count, seed, option)
    temporary = out.with_name(f".{out.name}.tmp")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(_jsonl(tasks), encoding="utf-8")
        temporary.replace(out)
    except OSError as error:
        raise UserError(f"{out}: {error.strerror}") from None
    typer.echo(f"{out}: {len(tasks)} tasks of split {split}")


@commands.command()
def audit(
    source: Source,
    split: Split = "train",
    level: Level = None,
    limit: Limit = 0,
    seed: Annotated[int, typer.Option(help="Seed of generation, shuffling, weights and inputs.")] = 0,
    option: Options = None,
    workers: Annotated[int, typer.Option(min=1, help="Tasks at a time.")] = 1,
    timeout: Annotated[float, typer.Option(help="Seconds per task.")] = 300.0,
    memory: Annotated[
        float | None,
        typer.Option(min=0, help="GiB of host memory per task; 0: no limit. Default: 80 % of all, by the workers."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE.jsonl", help="Results, a line per finished task; continued.")
    ] = None,
    device: Annotated[str, typer.Option(help="`cpu`, `cuda` or `cuda:N`.")] = "cpu",
    tolerance: Annotated[
        Literal["default", "kernelgym", "kernelbench"], typer.Option(help="Tolerance at which a task is defective.")
    ] = "default",
    as_json: Annotated[bool, typer.Option("--json", help="Everything as JSON on stdout.")] = False,
) -> None:
    """Find tasks that no tolerance can referee: constant, blind to their inputs, random, not finite, without a signal.

    Runs the references on two seeds' inputs. With --out an interrupted audit continues when the command is repeated.
    """
    if not 0 < timeout < float("inf"):
        raise UserError(f"--timeout {timeout:g}: expected a positive number of seconds")
    if out is not None and (out.suffix != ".jsonl" or out.is_dir()):
        raise UserError(f"--out {out}: expected a file whose name ends in .jsonl")
    _require_device(device)
    tasks = _load(source, split, level, limit, seed, option)

    from davinci_kernel.tasks import audit_tasks

    from . import _audit
    from ._progress import progress_bar

    if memory is None:
        memory = _memory_share(workers) if device == "cpu" else 0.0
    with progress_bar("auditing", len(tasks)) as advance:
        rows = audit_tasks(
            tasks, out, seed=seed, device=device, workers=workers, timeout=timeout, memory=memory, progress=advance
        )
    if as_json:
        typer.echo(json.dumps(_audit.as_json(rows, tolerance), indent=1))
    else:
        _audit.show(rows, tolerance)


def register(app: typer.Typer) -> None:
    app.add_typer(commands, name="tasks", no_args_is_help=True)


def _require_device(device: str) -> None:
    kind, _, index = device.partition(":")
    if kind not in ("cpu", "cuda") or (index and (kind == "cpu" or not index.isdigit())):
        raise UserError(f"--device {device}: expected cpu, cuda or cuda:N")
    if kind == "cuda":
        import torch

        if int(index or 0) >= torch.cuda.device_count():
            raise UserError(f"--device {device}: torch sees {torch.cuda.device_count()} CUDA devices here; use cpu")


def _memory_share(workers: int) -> float:
    """GiB: 80 % of the machine's memory by the workers, whole where there is more than one."""
    import os

    share = 0.8 * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30 / workers
    return float(int(share)) or share


def _load(
    source: str, split: str, levels: list[int] | None, limit: int, seed: int, options: list[str] | None
) -> list[Task]:
    from davinci_kernel.config import TasksConfig, validated
    from davinci_kernel.tasks import load_tasks

    config = {
        "source": source,
        "split": split,
        "levels": levels or [],
        "limit": limit,
        "options": _parsed(options or []),
    }
    return load_tasks(validated(TasksConfig, config, "davinci tasks"), seed)


def _parsed(options: list[str]) -> dict[str, Any]:
    """``key=value`` pairs; values are YAML, such as ``shapes=[[64,64]]``."""
    import yaml

    parsed = {}
    for option in options:
        key, equals, value = option.partition("=")
        if not equals:
            raise UserError(f"--option {option}: expected key=value, such as size=4")
        try:
            parsed[key] = yaml.safe_load(value)
        except yaml.YAMLError:
            raise UserError(f"--option {option}: the value is not valid YAML") from None
    return parsed


def _jsonl(tasks: list[Task]) -> str:
    from davinci_kernel.tasks import row_from_task

    return "".join(json.dumps(row_from_task(task)) + "\n" for task in tasks)
