"""Tasks from the generator, the suite, files, folders and the HF hub."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from davinci_kernel.config import TasksConfig, validated
from davinci_kernel.errors import UserError

from ._generator import GeneratorSpec, Split, generate_task
from ._reference import require_reference
from ._rows import task_from_row
from ._suite import SuiteSpec, load_suite
from ._task import Task

GENERATED_BY_DEFAULT = 512
_HUB_ID = re.compile(r"[\w-][\w.-]*/[\w.-]+")
_MOST_REPEATS = 200


def load_tasks(config: TasksConfig, seed: int) -> list[Task]:
    """The tasks of a configuration: levels filtered, shuffled with the seed, limited.

    Generated tasks are distinct within the list; of the split `heldout`, none has a chain that `train` can have.

    Raises:
        UserError: unknown source, malformed file or option, or nothing left after filtering.
    """
    if config.source == "generator":
        return _generated(config, seed)
    if config.source == "suite":
        tasks = load_suite(size=validated(SuiteSpec, config.options, "tasks.options").size)
    elif config.options:
        raise UserError(f"tasks.options: {config.source} takes no options; they belong to `generator` and `suite`")
    else:
        tasks = _from_source(config.source, config.split)
    tasks = [task for task in tasks if not config.levels or task.level in config.levels]
    if not tasks:
        raise UserError(f"{config.source}: no tasks of level {', '.join(map(str, config.levels)) or 'any'}")
    random.Random(f"tasks/{seed}").shuffle(tasks)
    return tasks[: config.limit or None]


def load_reference_file(path: str | Path, entry_point: str = "Model") -> Task:
    """One reference module as a task; `task_id` is the path as given.

    Raises:
        UserError: missing or unreadable file, syntax error, or a part of a reference is missing.
    """
    code = read_source(Path(path))
    require_reference(code, str(path), entry_point)
    return Task(str(path), code, name=Path(path).stem, entry_point=entry_point)


def _generated(config: TasksConfig, seed: int) -> list[Task]:
    if config.split not in ("train", "heldout"):
        raise UserError(f"tasks.split {config.split}: the generator has `train` and `heldout`")
    split: Split = "heldout" if config.split == "heldout" else "train"
    spec = validated(GeneratorSpec, config.options, "tasks.options")
    wanted = config.limit or GENERATED_BY_DEFAULT
    tasks: dict[str, Task] = {}
    index = repeats = 0
    while len(tasks) < wanted and repeats < _MOST_REPEATS:
        task = generate_task(seed, index, split, spec)
        index += 1
        if task.content_hash in tasks or (config.levels and task.level not in config.levels):
            repeats += 1
        else:
            tasks[task.content_hash] = task
            repeats = 0
    if len(tasks) < wanted:
        raise UserError(
            f"generator: found {len(tasks)} of {wanted} distinct tasks; allow more operators, or lower tasks.limit"
        )
    return list(tasks.values())


def _from_source(source: str, split: str) -> list[Task]:
    path = Path(source)
    if path.is_dir():
        tasks = list(_folder(path))
    elif path.suffix == ".py":
        tasks = [load_reference_file(path)]
    elif path.suffix in (".jsonl", ".parquet"):
        rows = _jsonl(path) if path.suffix == ".jsonl" else _parquet(path)
        tasks = [task_from_row(row, where, f"{path.stem}/{i}") for i, (where, row) in enumerate(rows)]
    elif path.exists():
        raise UserError(f"{source}: expected a folder, or a file that ends in .py, .jsonl or .parquet")
    elif _HUB_ID.fullmatch(source):
        rows = _hub(source, split)
        tasks = [task_from_row(row, where, f"{source}/{i}") for i, (where, row) in enumerate(rows)]
    else:
        raise UserError(f"{source}: no such file, and not `generator`, `suite` or an HF hub id such as owner/name")
    seen: set[str] = set()
    for task in tasks:
        if task.task_id in seen:
            raise UserError(f"{source}: two tasks are called {task.task_id}; ids must be unique")
        seen.add(task.task_id)
    return tasks


def _folder(root: Path) -> Iterator[Task]:
    """KernelBench's layout, `level1/1_name.py`, or a flat folder (a `levelN` folder gives its level)."""
    files = [path for path in sorted(root.rglob("*.py")) if not path.name.startswith(("_", "."))]
    if not files:
        raise UserError(f"{root}: no Python files; expected level1/1_name.py or 1_name.py")
    for path in files:
        code = read_source(path)
        require_reference(code, str(path))
        level = re.fullmatch(r"level_?(\d+)", path.resolve().parent.name)
        problem = re.match(r"(\d+)_", path.name)
        metadata = {"problem_id": int(problem[1])} if problem else {}
        task_id = f"{root.resolve().name}/{path.relative_to(root).with_suffix('')}"
        if level and problem:
            task_id = f"kernelbench/{level[1]}/{problem[1]}"
        yield Task(task_id, code, name=path.stem, level=int(level[1]) if level else None, metadata=metadata)


def _jsonl(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for number, line in enumerate(read_source(path).split("\n"), start=1):
        if not line.strip():
            continue
        where = f"{path}:{number}"
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise UserError(f"{where}: not valid JSON: {error.msg}") from None
        if not isinstance(row, dict):
            raise UserError(f"{where}: expected an object per line")
        yield where, row


def _parquet(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    import pyarrow
    from pyarrow import parquet

    try:
        table = parquet.read_table(path)
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except (pyarrow.ArrowException, OSError) as error:
        raise UserError(f"{path}: not a readable parquet file: {str(error).splitlines()[0]}") from None
    yield from ((f"{path}: row {i}", row) for i, row in enumerate(table.to_pylist()))


def _hub(source: str, split: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """A data set's split, or all of its `level_N` splits where it has those, as KernelBench does."""
    import datasets

    try:
        parts = datasets.load_dataset(source)
    except Exception as error:  # the hub's client raises dozens of types: no network, no such id, no access, bad files
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise UserError(f"{source}: no such file, and the HF hub gave no data set: {reason}") from None
    names = [split] if split in parts else [name for name in parts if re.fullmatch(r"level_\d+", str(name))]
    if not names:
        raise UserError(f"{source}: no split {split!r}; it has {', '.join(map(str, parts))}")
    for name in names:
        yield from ((f"{source}: {name} row {i}", row) for i, row in enumerate(parts[name]))


def read_source(path: Path) -> str:
    """A text file's content. Raises UserError, naming the file, where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise UserError(f"{path}: is a directory, expected a file") from None
    except UnicodeDecodeError:
        raise UserError(f"{path}: not a text file") from None
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None
