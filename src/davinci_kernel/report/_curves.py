"""Which metrics of ``metrics.jsonl`` become which learning curve."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from ._figures import Curve, line_chart

CHARTS: dict[str, dict[str, str]] = {
    "Policy reward": {"policy/reward": "reward"},
    "Correct, compiled, hacks": {"policy/correct": "correct", "policy/compiled": "compiled", "policy/hack": "hack"},
    "fast_1 of sampled kernels": {"policy/fast_1": "fast_1"},
    "Speedup": {"policy/speedup": "speedup"},
    "Skill library": {
        "skills/library": "in the library",
        "skills/proposed": "proposed so far",
        "skills/verified": "verified so far",
    },
    "Selection and summary reward": {"selection/reward": "selection", "summary/reward": "summary"},
    "Uplift of skills over the null scheme": {"skills/uplift": "uplift"},
    "Losses": {
        "losses/policy": "policy",
        "losses/selection": "selection",
        "losses/summary": "summary",
        "losses/replay": "replay",
    },
    "Seconds per step": {"time/generate": "generate", "time/evaluate": "evaluate", "time/update": "update"},
}
"""Title → metric → label."""
_COUNTS = {"skills/library": False, "skills/proposed": True, "skills/verified": True}
"""Counts, and whether the metric is the step's own, to be summed up."""


@dataclass(frozen=True)
class Chart:
    title: str
    svg: str
    caption: str


def learning_curves(metrics: Sequence[Mapping[str, Any]]) -> list[Chart]:
    """A chart per title that has at least one finite value."""
    charts = []
    for number, (title, wanted) in enumerate(CHARTS.items()):
        curves = [curve for name, label in wanted.items() if (curve := curve_of(metrics, name, label)).steps]
        if curves:
            last = ", ".join(f"{curve.label} {curve.values[-1]:.3g}" for curve in curves)
            charts.append(Chart(title, line_chart(f"curve{number}", curves), f"Last step: {last}."))
    return charts


def curve_of(metrics: Sequence[Mapping[str, Any]], name: str, label: str) -> Curve:
    """The finite values of one metric; rows without it are left out."""
    points = [(int(row.get("step", index)), row.get(name)) for index, row in enumerate(metrics)]
    kept = [(step, float(v)) for step, v in points if isinstance(v, int | float) and math.isfinite(v)]
    values = [value for _, value in kept]
    if _COUNTS.get(name):
        values = list(accumulate(values))
    return Curve(label, [step for step, _ in kept], values, is_count=name in _COUNTS)
