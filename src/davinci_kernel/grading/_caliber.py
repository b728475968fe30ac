"""Whether the numbers of two grading runs mean the same: the fields of their calibers that differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ._types import GradeRow

COMPARED = ("model", "library", "skill", "seed", "tasks")
"""Fields of ``grade.json`` in which runs may differ: they are what is compared, or (tasks) are compared pair by pair."""
_PASSING = ("clocks.sm", "clocks.mem")
"""Of a GPU's description: what changes from moment to moment."""


def caliber_differences(
    first: tuple[Mapping[str, Any], Sequence[GradeRow]], second: tuple[Mapping[str, Any], Sequence[GradeRow]]
) -> list[str]:
    """``name: value | value`` for each field in which two runs (caliber, rows) differ, then the tasks that do.

    Hardware and versions are those that the rows were measured on; a run of which nothing was judged has none to differ in.
    """
    a, b = _fields(*first), _fields(*second)
    measured = all(any(name.startswith("hardware.") for name in fields) for fields in (a, b))
    names = [name for name in dict.fromkeys((*a, *b)) if measured or not name.startswith("hardware.")]
    found = [f"{name}: {_shown(a.get(name))} | {_shown(b.get(name))}" for name in names if a.get(name) != b.get(name)]
    hashes_a, hashes_b = ({row.problem: row.provenance.get("task_hash") for row in rows} for _, rows in (first, second))
    changed = [problem for problem in hashes_a if problem in hashes_b and hashes_a[problem] != hashes_b[problem]]
    if changed:
        found.append(f"tasks: other code under the same name: {', '.join(changed[:3])}{' ...' * (len(changed) > 3)}")
    return found


def _fields(caliber: Mapping[str, Any], rows: Sequence[GradeRow]) -> dict[str, set[str]]:
    """Values by dotted name; several where the rows of a run differ."""
    shared = {name: value for name, value in caliber.items() if name not in COMPARED}
    fields = {name: {str(value)} for name, value in _leaves(shared).items()}
    for row in rows:
        for name, value in _leaves({"hardware": row.provenance.get("hardware") or {}}).items():
            if not name.endswith(_PASSING):
                fields.setdefault(name, set()).add(str(value))
    return fields


def _leaves(value: Any, prefix: str = "") -> dict[str, Any]:
    """Leaves of nested mappings by dotted path."""
    if not isinstance(value, Mapping):
        return {prefix: value}
    leaves: dict[str, Any] = {}
    for name, inner in value.items():
        leaves |= _leaves(inner, f"{prefix}.{name}" if prefix else str(name))
    return leaves


def _shown(values: set[str] | None) -> str:
    return "not recorded" if values is None else " and ".join(sorted(values))
