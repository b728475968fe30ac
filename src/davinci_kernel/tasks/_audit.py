"""The audit of many tasks: which of them no tolerance can referee. `_audit_probe` runs them; this reads its results."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict

from davinci_kernel.errors import EvaluatorError, UserError

from ._rows import row_from_task
from ._task import Task

FindingName = Literal[
    "zero_output",
    "constant_output",
    "input_independent",
    "non_finite",
    "nondeterministic",
    "random_output",
    "accepts_zeros",
    "accepts_constant",
    "accepts_other_output",
    "weak_signal",
    "identity_parameters",
    "failed",
]
"""What an audit may find.

- ``zero_output``, ``constant_output``: all elements of two inputs' outputs are 0; are equal, up to rounding. An output
  whose variation float64 shows to be rounding is constant.
- ``input_independent``: two inputs give the same output, up to a millionth of its spread.
- ``non_finite``: NaN or infinities. ``nondeterministic``: same inputs, weights, state and RNG seed, other output.
- ``random_output``: the forward draws random numbers, and another RNG seed gives another output.
- ``accepts_zeros``, ``accepts_constant``, ``accepts_other_output``: a scaled tolerance (``default``, ``kernelgym``)
  takes zeros, the midrange or the mean, or the other input's output as right, for both inputs.
- ``weak_signal``: the plain rule ``|error| <= tol + tol * |ref|`` does (``kernelbench``: 1e-4, ``plain_1e-2``).
- ``identity_parameters``: floating parameters or buffers that are all 0 or all 1; a warning.
- ``failed``: the reference raised, or ran out of time or memory: not audited.
"""

ToleranceName = Literal["default", "kernelgym", "kernelbench", "plain_1e-2"]
GradingTolerance = Literal["default", "kernelgym", "kernelbench"]

_ALWAYS = ("zero_output", "constant_output", "input_independent", "non_finite", "nondeterministic", "random_output")
_AT_TOLERANCE = ("accepts_zeros", "accepts_constant", "accepts_other_output", "weak_signal")

_Model = ConfigDict(frozen=True, extra="ignore")


class Finding(BaseModel):
    """One finding; `tolerance` where it holds at that tolerance only."""

    model_config = _Model
    finding: FindingName
    tolerance: ToleranceName | None = None
    reason: str

    @property
    def label(self) -> str:
        return f"{self.finding}@{self.tolerance}" if self.tolerance else self.finding

    def is_defect(self, tolerance: str) -> bool:
        """Whether it makes a task useless for grading at a tolerance."""
        return self.finding in _ALWAYS or (self.finding in _AT_TOLERANCE and self.tolerance == tolerance)


class AuditRow(BaseModel):
    """One task's result: a line of the audit's file."""

    model_config = _Model
    task_id: str
    name: str = ""
    level: int | None = None
    content_hash: str
    findings: tuple[Finding, ...] = ()
    figures: dict[str, Any] = {}
    """``elements`` of the output, its least and greatest value (``low``, ``high``), its largest ``difference`` between
    two inputs; ``float64`` where that run failed, ``inputs`` where the inputs seem not to depend on the seed."""
    seconds: float = 0.0

    @property
    def failure(self) -> str | None:
        """Why the task was not audited."""
        return next((found.reason for found in self.findings if found.finding == "failed"), None)

    def defects(self, tolerance: GradingTolerance = "default") -> tuple[Finding, ...]:
        """Findings for which grading at this tolerance says nothing about a kernel."""
        return tuple(found for found in self.findings if found.is_defect(tolerance))


def count_findings(rows: Iterable[AuditRow]) -> dict[str, int]:
    """Tasks by finding, ``accepts_zeros@default`` and so on, in the order of `FindingName`."""
    counts = Counter(label for row in rows for label in {found.label for found in row.findings})
    order = list(get_args(FindingName))
    return {label: counts[label] for label in sorted(counts, key=lambda x: (order.index(x.partition("@")[0]), x))}


def audit_tasks(
    tasks: Sequence[Task],
    out: Path | None = None,
    *,
    seed: int = 0,
    device: str = "cpu",
    workers: int = 1,
    timeout: float = 300.0,
    memory: float = 0.0,
    progress: Callable[[int, int, str], None] | None = None,
) -> list[AuditRow]:
    """Audit tasks, each in a process of its own, `workers` at a time; results in the order of `tasks`.

    Args:
        out: file that gets one JSON line per finished task; those in it are not run again, except tasks that failed
            under lower limits.
        seed: of weights and of the first inputs; `seed` + 1 of the second.
        timeout: seconds per task.
        memory: GiB of host memory per task; 0: no limit.
        progress: called with (finished tasks, all tasks, the last one's id).

    Raises:
        UserError: `out` is no such file, has other settings, or cannot be written.
        EvaluatorError: the process that runs the tasks failed.
    """
    from ._audit_probe import AuditFileError, Limits, read_results, settings_of, task_key, unfinished

    with tempfile.TemporaryDirectory(prefix="davinci-audit-") as scratch:
        source, log = Path(scratch) / "tasks.jsonl", out or Path(scratch) / "results.jsonl"
        rows = [row_from_task(task) for task in tasks]
        try:
            results, _ = read_results(log, settings_of(seed, device))
            todo = unfinished(rows, results, Limits(timeout, memory))
            log.parent.mkdir(parents=True, exist_ok=True)
            log.open("ab").close()
        except AuditFileError as error:
            raise UserError(str(error)) from None
        except OSError as error:
            raise UserError(f"{log}: {error.strerror}") from None
        done = len(rows) - len(todo)
        if progress:
            progress(done, len(rows), "")
        if todo:
            source.write_text("".join(json.dumps(row) + "\n" for row in todo), encoding="utf-8")
            flags = {"device": device, "seed": seed, "workers": workers, "timeout": timeout, "memory": memory}
            arguments = [f"--{name}={value}" for name, value in {**flags, "parent": os.getpid()}.items()]
            _run_probe([str(source), str(log), *arguments], done, len(rows), progress)
        results, _ = read_results(log, settings_of(seed, device))
    latest = {(row["task_id"], row["content_hash"]): row for row in results}
    return [AuditRow.model_validate(latest[task_key(row)]) for row in rows]


def _run_probe(arguments: list[str], done: int, total: int, progress: Callable[[int, int, str], None] | None) -> None:
    command = [sys.executable, str(Path(__file__).with_name("_audit_probe.py")), *arguments]
    with (
        tempfile.TemporaryFile() as errors,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, stdin=subprocess.DEVNULL) as process,
    ):
        try:
            assert process.stdout is not None
            for line in process.stdout:
                done += 1
                if progress:
                    progress(done, total, json.loads(line)["task_id"])
        except BaseException:
            process.terminate()
            raise
        if process.wait():
            errors.seek(0)
            lines = errors.read().decode(errors="replace").strip().splitlines() or ["no message"]
            raise EvaluatorError(f"the audit's process ended with code {process.returncode}: {lines[-1]}")
