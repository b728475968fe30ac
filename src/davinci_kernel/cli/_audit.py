"""How `davinci tasks audit` shows its results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from davinci_kernel.tasks import AuditRow, GradingTolerance


def as_json(rows: Sequence[AuditRow], tolerance: GradingTolerance) -> dict[str, Any]:
    """JSON-able: ``tolerance``, numbers of ``tasks`` and ``audited``, ``defective`` ids, ``failed`` reasons by id,
    ``counts`` by finding, ``results``."""
    from davinci_kernel.tasks import count_findings

    failed = {row.task_id: row.failure for row in rows if row.failure}
    return {
        "tolerance": tolerance,
        "tasks": len(rows),
        "audited": len(rows) - len(failed),
        "defective": [row.task_id for row in rows if row.defects(tolerance)],
        "failed": failed,
        "counts": count_findings(rows),
        "results": [row.model_dump(mode="json") for row in rows],
    }


def show(rows: Sequence[AuditRow], tolerance: GradingTolerance) -> None:
    """Tables of the defective tasks and of the findings' counts, and what was not audited, on stdout."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from davinci_kernel.tasks import count_findings

    console = Console()
    defective = [row for row in rows if row.defects(tolerance)]
    failed = [row for row in rows if row.failure]
    title = f"{len(defective)} of {len(rows) - len(failed)} audited tasks are defective at tolerance {tolerance}"
    if defective:
        table = Table(title=title, title_justify="left")
        for column in ("task", "findings", "reason"):
            table.add_column(column, overflow="fold")
        for row in defective:
            defects = row.defects(tolerance)
            names = ", ".join(dict.fromkeys(found.finding for found in defects))
            table.add_row(Text(row.task_id), Text(names), Text(defects[0].reason))
        console.print(table)
    else:
        console.print(title)
    if counts := count_findings(rows):
        table = Table(title="tasks by finding", title_justify="left")
        table.add_column("finding")
        table.add_column("tasks", justify="right")
        for label, count in counts.items():
            table.add_row(Text(label), str(count))
        console.print(table)
    for row in failed:
        console.print(Text(f"not audited: {row.task_id}: {row.failure}"))
