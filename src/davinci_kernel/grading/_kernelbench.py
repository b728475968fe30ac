"""KernelBench's own files, read and written.

- A run folder (``runs/<name>/``) holds one level: ``level_L_problem_P_sample_S_kernel.py`` per sample, and ``eval_results.json``:
  by problem number, a result or a list of results ``{sample_id, compiled, correctness, metadata, runtime, runtime_stats}``. Runtimes
  are milliseconds; −1 where none was measured.
- Baseline times (``results/timing/<hardware>/baseline_time_torch.json``): by ``levelL``, by the problem's file name, statistics
  ``{mean, std, min, max, num_trials, hardware, device}`` in milliseconds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from davinci_kernel.errors import UserError
from davinci_kernel.gym import Outcome

from ._record import read_json
from ._types import GradedTurn, GradeRow

_KERNEL = re.compile(r"level_(\d+)_problem_(\d+)_sample_(\d+)_kernel\.py")
BASELINES = {
    "eager": "baseline_time_torch.json",
    "compile": "baseline_time_torch_compile_inductor_default.json",
    "max-autotune": "baseline_time_torch_compile_inductor_max-autotune.json",
}
"""KernelBench's file of each of our baselines."""


class BaselineTimes:
    """A baseline file: mean milliseconds by level and problem number.

    Raises:
        UserError: another kind of file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.names: dict[tuple[int, int], str] = {}
        self.ms: dict[tuple[int, int], float] = {}
        for level, problems in read_json(path).items():
            number = re.fullmatch(r"level(\d+)", level)
            if not number or not isinstance(problems, Mapping):
                raise UserError(
                    f"{path}: {level}: expected KernelBench's baseline times: level1, level2 ... by problem file"
                )
            for file, times in problems.items():
                problem = re.match(r"(\d+)_", file)
                mean = times.get("mean") if isinstance(times, Mapping) else None
                if not problem or (mean is not None and not isinstance(mean, int | float)):
                    raise UserError(
                        f"{path}: {level}.{file}: expected a file name such as 1_name.py, with a mean in ms"
                    )
                key = int(number[1]), int(problem[1])
                self.names[key] = file.removesuffix(".py")
                if mean:
                    self.ms[key] = float(mean)


def import_run(folder: Path, baseline: BaselineTimes | None, level: int | None = None) -> list[GradeRow]:
    """The evaluated samples of a KernelBench run folder as rows of one turn.

    A speedup is baseline mean / kernel mean; without `baseline`, of the reference time in the result, if it has one.

    Args:
        level: for a folder without kernel files that say it.

    Raises:
        UserError: no results, a malformed one, or a level that is not clear.
    """
    kernels = {tuple(map(int, m.groups())): path for path in folder.glob("*.py") if (m := _KERNEL.fullmatch(path.name))}
    level = _level(folder, {key[0] for key in kernels}, level)
    path = folder / "eval_results.json"
    rows = []
    for problem, results in read_json(path).items():
        for result in results if isinstance(results, list) else [results]:
            where = f"{path}: problem {problem}"
            if not str(problem).isdigit() or not isinstance(result, Mapping) or "correctness" not in result:
                raise UserError(
                    f"{where}: expected a problem number with {{sample_id, compiled, correctness, runtime ...}}"
                )
            key = level, int(problem)
            sample = int(result.get("sample_id") or 0)
            kernel = kernels.get((*key, sample))
            code = kernel.read_text(encoding="utf-8", errors="replace") if kernel else None
            rows.append(_row(key, sample, result, code, baseline))
    if not rows:
        raise UserError(f"{path}: no results")
    return rows


def _level(folder: Path, found: set[int], level: int | None) -> int:
    if level is None and len(found) == 1:
        return next(iter(found))
    if level is None:
        there = f"kernels of levels {', '.join(map(str, sorted(found)))}" if found else "no level_L_problem_P_... file"
        raise UserError(f"{folder}: {there}; say with --level which level eval_results.json is of")
    return level


def _row(
    key: tuple[int, int], sample: int, result: Mapping[str, Any], code: str | None, baseline: BaselineTimes | None
) -> GradeRow:
    runtime, reference = _measured(result.get("runtime")), _measured(result.get("ref_runtime"))
    if baseline is not None:
        reference = baseline.ms.get(key)
    metadata = result.get("metadata") or {}
    correct = bool(result["correctness"])
    turn = GradedTurn(
        turn=0,
        outcome=Outcome.CORRECT if correct else _outcome(bool(result.get("compiled")), metadata),
        compiled=bool(result.get("compiled")),
        speedup=reference / runtime if correct and runtime and reference else None,
        reference_ms=reference,
        kernel_ms=runtime,
        message="; ".join(str(metadata[name]) for name in _FAILURES if name in metadata),
        code=code,
    )
    identity = f"kernelbench/{key[0]}/{key[1]}"
    hardware = {name: metadata[name] for name in ("hardware", "device") if name in metadata}
    return GradeRow(
        task_id=identity,
        name=baseline.names.get(key, identity) if baseline else identity,
        level=key[0],
        problem_id=key[1],
        sample=sample,
        turns=(turn,),
        provenance={"hardware": hardware or None},
    )


_FAILURES = ("compilation_error", "runtime_error", "correctness_issue")
"""Where KernelBench's metadata says what went wrong."""


def _outcome(compiled: bool, metadata: Mapping[str, Any]) -> Outcome:
    if not compiled:
        return Outcome.COMPILE_ERROR
    if "runtime_error" in metadata:
        return Outcome.RUNTIME_ERROR
    if "shape" in str(metadata.get("correctness_issue", "")).lower():
        return Outcome.WRONG_SHAPE
    return Outcome.WRONG_VALUE


def _measured(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and value > 0 else None


def export_run(rows: Iterable[GradeRow], out: Path, label: str, baseline: str, best: bool = False) -> list[Path]:
    """Write ``runs/<label>_level<L>/`` and ``results/timing/<label>/`` below `out`, as KernelBench's repository has them.

    A row's last turn counts, or with `best` its own best. The baseline's mean is the median of its measured reference
    times. Rows without KernelBench's numbers are left out, and so are faults of ours.

    Returns:
        The folders written.

    Raises:
        UserError: no row to write, or a folder that exists.
    """
    levels: dict[int, list[GradeRow]] = {}
    for row in rows:
        if row.level is not None and row.problem_id is not None and row.fault is None:
            levels.setdefault(row.level, []).append(row)
    if not levels:
        raise UserError(f"{label}: no task has KernelBench's level and problem number; nothing to export")
    timing = out / "results" / "timing" / label
    folders = {level: out / "runs" / f"{label}_level{level}" for level in sorted(levels)}
    for folder in (*folders.values(), timing):
        if folder.exists():
            raise UserError(f"{folder}: exists; choose another folder or --label")
    for level, folder in folders.items():
        folder.mkdir(parents=True)
        results: dict[str, list[dict[str, Any]]] = {}
        for row in sorted(levels[level], key=lambda r: (r.problem_id or 0, r.sample)):
            turn = row.best() if best else row.last()
            stem = f"level_{level}_problem_{row.problem_id}_sample_{row.sample}"
            (folder / f"{stem}_kernel.py").write_text((turn.code if turn else None) or "", encoding="utf-8")
            results.setdefault(str(row.problem_id), []).append(_result(row, turn))
        (folder / "eval_results.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    timing.mkdir(parents=True)
    times = {f"level{level}": _baseline(levels[level], best) for level in folders}
    (timing / BASELINES[baseline]).write_text(json.dumps(times, indent=4) + "\n", encoding="utf-8")
    return [*folders.values(), timing]


def _result(row: GradeRow, turn: GradedTurn | None) -> dict[str, Any]:
    metadata: dict[str, Any] = _device(row)
    if turn is None or not turn.correct:
        outcome = turn.outcome if turn else Outcome.COMPILE_ERROR
        issue = {Outcome.COMPILE_ERROR: "compilation_error", Outcome.RUNTIME_ERROR: "runtime_error"}
        metadata[issue.get(outcome, "correctness_issue")] = f"{outcome.value}: {turn.message if turn else 'no answer'}"
    timed = turn.kernel_ms if turn and turn.measured_speedup else None
    return {
        "sample_id": row.sample,
        "compiled": bool(turn and turn.compiled),
        "correctness": bool(turn and turn.correct),
        "metadata": metadata,
        "runtime": timed or -1.0,
        "runtime_stats": {"mean": timed, "statistic": "median"} if timed else {},
    }


def _baseline(rows: Sequence[GradeRow], best: bool) -> dict[str, dict[str, Any]]:
    measured: dict[str, list[float]] = {}
    devices: dict[str, dict[str, Any]] = {}
    for row in rows:
        turn = row.best() if best else row.last()
        if turn and turn.reference_ms:
            numbered = row.name.startswith(f"{row.problem_id}_")
            file = f"{row.name}.py" if numbered else f"{row.problem_id}_{row.name.replace('/', '_')}.py"
            measured.setdefault(file, []).append(turn.reference_ms)
            devices[file] = _device(row)
    return {
        file: {"mean": median(ms), "min": min(ms), "max": max(ms), "num_trials": len(ms), **devices[file]}
        for file, ms in measured.items()
    }


def _device(row: GradeRow) -> dict[str, Any]:
    hardware = row.provenance.get("hardware") or {}
    name = (hardware.get("gpu") or {}).get("name") or hardware.get("cpu") or hardware.get("hardware")
    return {"hardware": name, "device": hardware["device"]} if name and hardware.get("device") else {}
