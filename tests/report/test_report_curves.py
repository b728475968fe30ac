"""The numbers behind the learning curves."""

import pytest

from davinci_kernel.report._curves import curve_of, learning_curves
from davinci_kernel.report._figures import Curve, line_chart, smooth


def test_smoothing_is_the_mean_of_the_last_values():
    assert smooth([1.0, 2.0, 6.0, 4.0], 2).tolist() == [1.0, 1.5, 4.0, 5.0]


def test_smoothing_over_one_value_changes_nothing():
    assert smooth([3.0, 1.0], 1).tolist() == [3.0, 1.0]


def test_missing_and_infinite_values_are_left_out():
    metrics = [
        {"step": 5, "a": 1},
        {"step": 6},
        {"step": 7, "a": None},
        {"step": 8, "a": float("nan")},
        {"step": 9, "a": 2.5},
    ]
    curve = curve_of(metrics, "a", "A")
    assert (list(curve.steps), list(curve.values)) == ([5, 9], [1.0, 2.5])


def test_skills_of_each_step_are_summed_up_and_the_library_is_not():
    metrics = [{"step": s, "skills/verified": v, "skills/library": n} for s, v, n in ((1, 1, 1), (2, 0, 1), (3, 2, 3))]
    assert list(curve_of(metrics, "skills/verified", "").values) == [1.0, 1.0, 3.0]
    assert list(curve_of(metrics, "skills/library", "").values) == [1.0, 1.0, 3.0]


def test_only_charts_with_values():
    charts = learning_curves([{"step": 1, "policy/reward": 0.5, "time/update": 2.0}])
    assert [chart.title for chart in charts] == ["Policy reward", "Seconds per step"]
    assert charts[0].caption == "Last step: reward 0.5."


@pytest.mark.parametrize("name", ["one", "two"])
def test_ids_carry_the_charts_name_and_colours_are_the_pages(name):
    svg = line_chart(name, [Curve("a", [1, 2], [1.0, 2.0]), Curve("b", [1, 2], [2.0, 1.0])])
    assert f'id="{name}-axes_1"' in svg
    assert "var(--series-0)" in svg
    assert "var(--series-1)" in svg
    assert "#0102" not in svg
