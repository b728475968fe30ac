"""Summaries side by side, for the terminal and for Markdown."""

from __future__ import annotations

from collections.abc import Mapping

from rich.table import Table

from ._metrics import GEOMETRIC, SHARES
from ._types import Estimate, Figures, GradeSummary

_NONE = Estimate(value=0.0, low=0.0, high=0.0, n=0)


def cell(estimate: Estimate) -> str:
    """``value [low, high]``, or a dash where there was nothing to take the figure of."""
    return f"{estimate.value:.3f} [{estimate.low:.3f}, {estimate.high:.3f}]" if estimate.n else "–"


def table_rows(summaries: Mapping[str, GradeSummary]) -> list[tuple[str, list[str]]]:
    """(metric, one cell per summary): the last turn's metrics, the best turn's main ones, and the counts."""
    rows = [(name, [cell(s.last[name]) for s in summaries.values()]) for name in (*SHARES, *GEOMETRIC)]
    empty = Figures(last={}, best={})
    for name in ("correct", "fast_1", "geomean_speedup"):
        rows.append((f"best turn: {name}", [cell(s.best_turn.get(name, _NONE)) for s in summaries.values()]))
    for name in ("correct", "fast_1", "geomean_speedup"):
        rows.append((f"best of history: {name}", [cell(s.best[name]) for s in summaries.values()]))
    for subset in dict.fromkeys(name for s in summaries.values() for name in s.subsets):
        for name in ("correct", "fast_1", "fast_1_ge", "geomean_speedup"):
            found = [s.subsets.get(subset, empty).last.get(name, _NONE) for s in summaries.values()]
            rows.append((f"{subset}: {name}", [cell(estimate) for estimate in found]))
    rows.append(("hacks among all turns", [f"{s.n.hack_share:.3f}" for s in summaries.values()]))
    tokens = [f"{s.spent.prompt_tokens:.0f} + {s.spent.completion_tokens:.0f}" for s in summaries.values()]
    rows.append(("tokens: prompt + answer", tokens))
    rows.append(("dollars", [f"{s.spent.dollars:.2f}" if s.spent.dollars else "–" for s in summaries.values()]))
    rows.append(("defective tasks", [f"{s.n.defective_tasks} of {s.n.tasks}" for s in summaries.values()]))
    rows.append(("tasks × samples graded", [f"{s.n.graded} of {s.n.rows}" for s in summaries.values()]))
    rows.append(("infrastructure errors", [str(s.n.infra_errors) for s in summaries.values()]))
    return rows


def render_table(summaries: Mapping[str, GradeSummary]) -> Table:
    """A terminal table with one column per label."""
    table = Table("last turn, 95 % intervals", *summaries, title_justify="left")
    for name, cells in table_rows(summaries):
        table.add_row(name, *cells)
    return table


def render_markdown(summaries: Mapping[str, GradeSummary]) -> str:
    """The same table in Markdown."""
    labels = [label.replace("|", "\\|") for label in summaries]
    lines = [["last turn, 95 % intervals", *labels], ["---", *("---:" for _ in labels)]]
    lines += [[name, *cells] for name, cells in table_rows(summaries)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"
