"""Summaries and comparisons as tables: for the terminal, for Markdown, for LaTeX."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.markup import escape
from rich.table import Table
from rich.text import Text

from ._compare import Comparison, Difference
from ._metrics import GEOMETRIC, SHARES
from ._types import Estimate, Figures, GradeSummary

MAIN = ("correct", "fast_1", "fast_1_ge", "geomean_speedup")
HEADER = "last turn, 95 % intervals"
_NONE = Estimate(value=0.0, low=0.0, high=0.0, n=0)
_LATEX = str.maketrans(
    {c: f"\\{c}" for c in "&%$#_{}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "–": "--", "×": r"$\times$"}
)


def cell(estimate: Estimate) -> str:
    """``value [low, high]``, or a dash where there was nothing to take the figure of."""
    return f"{estimate.value:.3f} [{estimate.low:.3f}, {estimate.high:.3f}]" if estimate.n else "–"


def table_rows(summaries: Mapping[str, GradeSummary]) -> list[tuple[str, list[str]]]:
    """(metric, one cell per summary): the last turn's metrics, the best turn's main ones, and the counts."""
    rows = [(name, [cell(s.last[name]) for s in summaries.values()]) for name in (*SHARES, *GEOMETRIC)]
    empty = Figures(last={}, best={})
    for name in MAIN:
        rows.append((f"best turn: {name}", [cell(s.best_turn.get(name, _NONE)) for s in summaries.values()]))
    for name in MAIN:
        rows.append((f"best of history: {name}", [cell(s.best[name]) for s in summaries.values()]))
    for subset in dict.fromkeys(name for s in summaries.values() for name in s.subsets):
        for name in MAIN:
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
    """A terminal table with one column per label. Metrics of one group stand under its name, and with more than two
    labels an interval stands under its value, so that 80 columns are enough for three."""
    table = Table(HEADER, *map(escape, summaries), title_justify="left")
    group = ""
    for name, cells in table_rows(summaries):
        head, separator, metric = name.partition(": ")
        if separator and metric in MAIN:
            if head != group:
                table.add_section()
                table.add_row(head)
            name = f"  {metric}"
        elif group:
            table.add_section()
        group = head if separator and metric in MAIN else ""
        table.add_row(name, *(c.replace(" [", "\n[") if len(summaries) > 2 else c for c in cells))
    return table


def render_markdown(summaries: Mapping[str, GradeSummary]) -> str:
    """The same table in Markdown."""
    return _markdown([HEADER, *summaries], table_rows(summaries))


def render_latex(summaries: Mapping[str, GradeSummary]) -> str:
    """The same table in LaTeX (package booktabs)."""
    return _latex([HEADER, *summaries], table_rows(summaries))


def write_tables(out_dir: Path, label: str, summary: GradeSummary) -> None:
    """``table.md`` and ``table.tex`` of one run."""
    for name, render in (("table.md", render_markdown), ("table.tex", render_latex)):
        partial = out_dir / f"{name}.partial"
        partial.write_text(render({label: summary}), encoding="utf-8")
        partial.replace(out_dir / name)


COMPARISON_HEADER = ("run", "measure", "difference", "wins", "losses", "ties", "sign p", "flip p")


def comparison_rows(comparisons: Sequence[Comparison]) -> list[tuple[str, list[str]]]:
    """A row per run and measure; p-values are Holm's."""
    return [(c.run, _difference_cells(d)) for c in comparisons for d in c.measures]


def render_comparison(comparisons: Sequence[Comparison]) -> Table:
    """A terminal table; a run's measures stand under its name."""
    table = Table("run", *COMPARISON_HEADER[2:], title=Text(_caption(comparisons)), title_justify="left")
    for comparison in comparisons:
        table.add_section()
        table.add_row(Text(comparison.run, overflow="fold"))
        for difference in comparison.measures:
            measure, *cells = _difference_cells(difference)
            table.add_row(f"  {measure}", *cells)
    return table


def render_tasks(comparison: Comparison) -> Table:
    """Every pair of one comparison: correct, fast_1 and speedup in the base and in the run."""
    table = Table("problem", "", escape(comparison.base), escape(comparison.run))
    for task in comparison.tasks:
        base, run = task.base["speedup"], task.run["speedup"]
        mark = "=" if base == run else "win" if run > base else "loss"
        cells = (f"{f['correct']:.2f} correct  {f['speedup']:.2f}x" for f in (task.base, task.run))
        table.add_row(Text(task.problem, overflow="fold"), mark, *cells)
    return table


def comparison_markdown(comparisons: Sequence[Comparison]) -> str:
    """The comparison in Markdown."""
    return f"{_caption(comparisons)}\n\n" + _markdown(COMPARISON_HEADER, comparison_rows(comparisons))


def comparison_latex(comparisons: Sequence[Comparison]) -> str:
    """The comparison in LaTeX (package booktabs)."""
    return f"% {_caption(comparisons)}\n" + _latex(COMPARISON_HEADER, comparison_rows(comparisons))


def _caption(comparisons: Sequence[Comparison]) -> str:
    first = comparisons[0]
    pairs = sorted({len(c.tasks) for c in comparisons})
    turn = "last turn" if first.reading == "last" else "best of history"
    return f"against {first.base}, {turn}, {' to '.join(map(str, pairs))} paired tasks"


def _difference_cells(d: Difference) -> list[str]:
    value, low, high = (f"{v:.2f}" for v in (d.difference.value, d.difference.low, d.difference.high))
    value = f"x{value}" if d.measure == "speedup" else f"{d.difference.value:+.2f}"
    shown = f"{value} [{low}, {high}]" if d.difference.n else "–"
    flip = "" if d.flip_p_holm is None else f"{d.flip_p_holm:.3g}"
    return [d.measure, shown, str(d.wins), str(d.losses), str(d.ties), f"{d.sign_p_holm:.3g}", flip]


def _markdown(header: Sequence[str], rows: Sequence[tuple[str, Sequence[str]]]) -> str:
    lines = [[name.replace("|", "\\|") for name in header], ["---", *("---:" for _ in header[1:])]]
    lines += [[name.replace("|", "\\|"), *cells] for name, cells in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def _latex(header: Sequence[str], rows: Sequence[tuple[str, Sequence[str]]]) -> str:
    def line(cells: Sequence[str]) -> str:
        return " & ".join(c.translate(_LATEX) for c in cells) + r" \\"

    columns = "l" + "r" * (len(header) - 1)
    head = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", line(header), r"\midrule"]
    body = [line((name, *cells)) for name, cells in rows]
    return "\n".join([*head, *body, r"\bottomrule", r"\end{tabular}"]) + "\n"
