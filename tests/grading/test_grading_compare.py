"""Paired comparisons and their tests against hand-computed numbers."""

import pytest

from davinci_kernel.grading import (
    GradedTurn,
    GradeRow,
    caliber_differences,
    compare,
    comparison_latex,
    comparison_markdown,
    holm,
    sign_flip_test,
    sign_test,
)
from davinci_kernel.gym import Outcome


def row(problem, *speedups, sample=0, outcome=Outcome.CORRECT, **provenance):
    """Turns of these speedups; None: a wrong value."""
    turns = tuple(
        GradedTurn(turn=i, outcome=outcome if s else Outcome.WRONG_VALUE, speedup=s, compiled=True)
        for i, s in enumerate(speedups)
    )
    return GradeRow(
        task_id=f"t{problem}", level=1, problem_id=problem, sample=sample, turns=turns, provenance=provenance
    )


@pytest.mark.parametrize(
    ("wins", "losses", "expected"),
    [(0, 0, 1.0), (1, 0, 1.0), (5, 0, 2 / 32), (8, 2, 2 * (1 + 10 + 45) / 1024), (2, 8, 112 / 1024), (3, 3, 1.0)],
)
def test_sign_test(wins, losses, expected):
    assert sign_test(wins, losses) == pytest.approx(expected)


def test_sign_flip_test_counts_all_patterns():
    """Of the 8 sums ±1±2±3, |sum| ≥ 6 for two, ≥ 4 for four; zeros do not count."""
    assert sign_flip_test([1, 2, 3]) == 2 / 8
    assert sign_flip_test([-1, 2, 3, 0, 0]) == 4 / 8
    assert sign_flip_test([]) == sign_flip_test([0.0, 0.0]) == 1.0


def test_sign_flip_test_with_many_pairs_agrees_with_the_normal_one():
    """60 differences ±1 with sum 16: z = 16/√60 = 2.066 (continuity: 15/√60 = 1.936, p = 0.0528)."""
    found = sign_flip_test([1.0] * 38 + [-1.0] * 22)
    assert found == pytest.approx(0.0528, abs=0.006)
    assert sign_flip_test([1.0] * 60) == 1 / 20_001


def test_holm():
    """Holm's own step-down: 3·0.01, 2·0.03, then never below the one before."""
    assert holm([0.03, 0.01, 0.04]) == pytest.approx([0.06, 0.03, 0.06])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


def test_pairs_by_level_and_problem_whatever_the_task_ids():
    base = [row(1, 1.0), row(2, 2.0), row(3, None), row(4, 1.0)]
    other = [r.model_copy(update={"task_id": f"other/{r.problem_id}"}) for r in (row(1, 2.0), row(2, 2.0), row(3, 3.0))]
    (found,) = compare(("a", base), [("b", other)])
    assert [t.problem for t in found.tasks] == ["kernelbench/1/1", "kernelbench/1/2", "kernelbench/1/3"]
    assert found.unpaired == 1
    by_name = {d.measure: d for d in found.measures}
    assert {m: (d.wins, d.losses, d.ties) for m, d in by_name.items()} == {
        "correct": (1, 0, 2),
        "fast_1": (2, 0, 1),
        "speedup": (2, 0, 1),
    }
    assert by_name["correct"].difference.value == pytest.approx(1 / 3)
    assert by_name["speedup"].difference.value == pytest.approx(6 ** (1 / 3))
    assert by_name["speedup"].sign_p == by_name["speedup"].flip_p == 0.5


def test_samples_of_a_task_are_averaged_and_faults_left_out():
    base = [row(1, 4.0), row(1, 1.0, sample=1), row(2, 2.0, outcome=Outcome.INFRA_ERROR)]
    (found,) = compare(("a", base), [("b", [row(1, None), row(2, 1.0)])])
    (task,) = found.tasks
    assert task.base == pytest.approx({"correct": 1.0, "fast_1": 0.5, "speedup": 2.0})
    assert task.run == {"correct": 0.0, "fast_1": 0.0, "speedup": 1.0}
    assert found.unpaired == 1


def test_last_turn_or_best_of_history():
    runs = ("a", [row(1, 1.0)]), [("b", [row(1, 3.0, None)])]
    assert [compare(*runs, reading=r)[0].tasks[0].run["speedup"] for r in ("last", "best")] == pytest.approx([1.0, 3.0])


def test_p_values_are_corrected_over_the_compared_runs():
    base = [row(i, 1.0) for i in range(6)]
    faster, same = [row(i, 2.0) for i in range(6)], base
    alone = compare(("a", base), [("b", faster)])[0].measures[2]
    both = compare(("a", base), [("b", faster), ("c", same)])[0].measures[2]
    assert (alone.sign_p_holm, alone.flip_p_holm) == (2 / 64, 2 / 64)
    assert (both.sign_p, both.sign_p_holm, both.flip_p_holm) == (2 / 64, 4 / 64, 4 / 64)


CALIBER = {"model": "m", "seed": 0, "settings": {"tolerance": "default"}, "tasks": {"t1": "x"}, "library": None}


def test_caliber_names_what_differs():
    here, there = (
        {"cpu": "A", "gpu": {"name": "H", "clocks.sm": "1"}},
        {"cpu": "B", "gpu": {"name": "H", "clocks.sm": "2"}},
    )
    first = (CALIBER, [row(1, 1.0, hardware=here, task_hash="x")])
    other = CALIBER | {"model": "n", "seed": 1, "library": "abc", "settings": {"tolerance": "kernelgym"}}
    second = (other, [row(1, 1.0, hardware=there, task_hash="y")])
    assert caliber_differences(first, second) == [
        "settings.tolerance: default | kernelgym",
        "hardware.cpu: A | B",
        "tasks: other code under the same name: kernelbench/1/1",
    ]
    assert caliber_differences(first, first) == []


def test_a_run_without_any_measurement_has_no_hardware_to_differ_in():
    first = (CALIBER, [row(1, 1.0, hardware={"cpu": "A"})])
    assert caliber_differences(first, (CALIBER, [row(1, None, hardware=None)])) == []


def test_comparison_tables():
    comparisons = compare(("a_1", [row(1, 1.0)]), [("b|c", [row(1, 2.0)])])
    assert "| b\\|c | speedup | x2.00 [2.00, 2.00] | 1 | 0 | 0 | 1 | 1 |" in comparison_markdown(comparisons)
    latex = comparison_latex(comparisons)
    assert r"b|c & fast\_1 & +1.00 [1.00, 1.00] & 1 & 0 & 0 & 1 &  \\" in latex
    assert latex.startswith("% against a_1, last turn, 1 paired tasks\n\\begin{tabular}{lrrrrrrr}")
