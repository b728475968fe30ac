"""Figures as inline SVG whose colours follow the page's light or dark scheme.

Matplotlib cannot write CSS variables, so it draws with placeholder colours that are replaced afterwards.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from davinci_kernel.grading import THRESHOLDS, GradeSummary

_TEXT, _GRID = "#010203", "#010204"
_SERIES = tuple(f"#0102{number:02x}" for number in range(16, 24))
_COLOURS = {_TEXT: "currentColor", _GRID: "var(--grid)"} | {c: f"var(--series-{i})" for i, c in enumerate(_SERIES)}
_SIZE = (4.2, 2.5)


@dataclass(frozen=True)
class Curve:
    """One line of a chart: `values[i]` at step `steps[i]`. A count is drawn as it is, a noisy figure smoothed."""

    label: str
    steps: Sequence[int]
    values: Sequence[float]
    is_count: bool = False


def smooth(values: Sequence[float], window: int) -> np.ndarray:
    """Mean of the last `window` values (of fewer at the start)."""
    sums = np.concatenate([[0.0], np.cumsum(np.asarray(values, float))])
    ends = np.arange(1, len(values) + 1)
    starts = np.maximum(ends - window, 0)
    return (sums[ends] - sums[starts]) / (ends - starts)


def line_chart(name: str, curves: Sequence[Curve]) -> str:
    """Raw values pale, their moving mean on top. `name` is unique in the page."""
    figure, axes = _canvas()
    for colour, curve in zip(_SERIES, curves, strict=False):
        window = 1 if curve.is_count else max(1, len(curve.steps) // 10)
        axes.plot(curve.steps, curve.values, color=colour, alpha=0.3 if window > 1 else 1.0, linewidth=1)
        axes.plot(curve.steps, smooth(curve.values, window), color=colour, label=curve.label, linewidth=1.8)
        if len(curve.steps) == 1:
            axes.plot(curve.steps, curve.values, "o", color=colour)
    axes.set_xlabel("step")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    return _svg(figure, axes, name)


def fast_p_chart(name: str, grades: Mapping[str, GradeSummary]) -> str:
    """fast_p of the last turn for every p, one bar per grading, with 95 % intervals."""
    figure, axes = _canvas((7.2, 3.2))
    width = 0.8 / max(1, len(grades))
    for number, (label, summary) in enumerate(grades.items()):
        estimates = [summary.last[f"fast_{p:g}"] for p in THRESHOLDS]
        values = np.array([e.value for e in estimates])
        errors = np.array([[max(0.0, e.value - e.low), max(0.0, e.high - e.value)] for e in estimates]).T
        places = np.arange(len(THRESHOLDS)) + (number - (len(grades) - 1) / 2) * width
        axes.bar(places, values, width * 0.92, color=_SERIES[number % len(_SERIES)], label=label)
        axes.errorbar(places, values, errors, fmt="none", ecolor=_TEXT, capsize=3, linewidth=1)
    axes.set_xticks(range(len(THRESHOLDS)), [f"fast_{p:g}" for p in THRESHOLDS])
    axes.set_ylim(0, 1.02)
    return _svg(figure, axes, name)


def _canvas(size: tuple[float, float] = _SIZE) -> tuple[Figure, Axes]:
    figure = Figure(figsize=size, layout="constrained")
    figure.patch.set_alpha(0)
    axes = figure.add_subplot()
    axes.patch.set_alpha(0)
    axes.grid(color=_GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(colors=_TEXT, length=0, labelsize=9, pad=6)
    for side, spine in axes.spines.items():
        spine.set_visible(side == "bottom")
        spine.set_color(_GRID)
    axes.xaxis.label.set_color(_TEXT)
    axes.xaxis.label.set_fontsize(9)
    return figure, axes


def _svg(figure: Figure, axes: Axes, name: str) -> str:
    if len(axes.get_legend_handles_labels()[1]) > 1:
        axes.legend(frameon=False, fontsize=9, labelcolor=_TEXT)
    buffer = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": name}):
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    text = buffer.getvalue()
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text[text.index("<svg") :], flags=re.DOTALL)
    for colour, variable in _COLOURS.items():
        text = text.replace(colour, variable)
    # Ids are unique within one drawing only, but the page holds many.
    text = re.sub(r'\bid="', f'id="{name}-', text)
    text = re.sub(r'(url\(#|href="#)', rf"\g<1>{name}-", text)
    opening = re.compile(r'<svg[^>]*?viewBox="([^"]+)"[^>]*>')
    return opening.sub(
        r'<svg viewBox="\1" xmlns:xlink="http://www.w3.org/1999/xlink" aria-hidden="true">', text, count=1
    ).strip()
