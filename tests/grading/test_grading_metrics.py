"""fast_p, rates, speedups, pass@k and their intervals against hand-computed numbers."""

import io
import math

import pytest
from rich.console import Console

from davinci_kernel.grading import (
    GradedTurn,
    GradeRow,
    GradeSummary,
    pass_at_k,
    ratio_estimate,
    render_latex,
    render_markdown,
    render_table,
    summarise,
)
from davinci_kernel.grading._table import table_rows
from davinci_kernel.gym import Outcome, Verdict


def turn(outcome="CORRECT", speedup=None, index=0, **fields):
    fields.setdefault("compiled", outcome not in ("COMPILE_ERROR", "INFRA_ERROR"))
    return GradedTurn(turn=index, outcome=Outcome(outcome), speedup=speedup, **fields)


def row(*turns, task="a", sample=0, level=1):
    placed = tuple(t.model_copy(update={"turn": i}) for i, t in enumerate(turns))
    return GradeRow(task_id=task, name=task, level=level, sample=sample, turns=placed)


def values(rows):
    return {name: estimate.value for name, estimate in summarise(rows).last.items()}


@pytest.fixture
def mixed():
    """Eight rows of two tasks; one lost to infrastructure, so every share is out of seven."""
    return [
        row(turn(speedup=1.0), task="a", sample=0),
        row(turn(speedup=1.2), task="a", sample=1),
        row(turn(speedup=4.0), task="a", sample=2),
        row(turn(speedup=9.0, too_noisy=True), task="a", sample=3),
        row(turn("COMPILE_ERROR"), task="b", sample=0),
        row(turn("HACK", hack="torch-fallback"), task="b", sample=1),
        row(turn("WRONG_VALUE"), task="b", sample=2),
        row(turn("INFRA_ERROR"), task="b", sample=3),
    ]


def test_fast_p_is_strict_and_its_twin_is_not(mixed):
    found = values(mixed)
    assert found["fast_1"] == pytest.approx(2 / 7)
    assert found["fast_1_ge"] == pytest.approx(3 / 7)
    assert found["fast_1.2"] == pytest.approx(1 / 7)
    assert found["fast_1.2_ge"] == pytest.approx(2 / 7)
    for p in ("1.5", "2", "3"):
        assert found[f"fast_{p}"] == found[f"fast_{p}_ge"] == pytest.approx(1 / 7)


def test_rates(mixed):
    found = values(mixed)
    assert found["correct"] == pytest.approx(4 / 7)
    assert found["compiled"] == pytest.approx(6 / 7)
    assert found["hack"] == pytest.approx(1 / 7)


def test_speedups_of_correct_and_measured_rows(mixed):
    found = values(mixed)
    assert found["mean_speedup"] == pytest.approx(6.2 / 3)
    assert found["geomean_speedup"] == pytest.approx(4.8 ** (1 / 3))
    assert found["geomean_speedup_fallback"] == pytest.approx(4.8 ** (1 / 7))


def test_counts(mixed):
    n = summarise([*mixed, row(turn("INVALID_REFERENCE"), task="c")]).n
    assert n.model_dump() == {
        "tasks": 3,
        "rows": 9,
        "graded": 7,
        "infra_errors": 1,
        "invalid_references": 1,
        "too_noisy": 1,
        "defective_tasks": 0,
        "turn_outcomes": {
            "COMPILE_ERROR": 1,
            "CORRECT": 4,
            "HACK": 1,
            "INFRA_ERROR": 1,
            "INVALID_REFERENCE": 1,
            "WRONG_VALUE": 1,
        },
    }


def test_a_speedup_of_an_incorrect_turn_is_not_believed():
    found = values([row(turn("WRONG_VALUE", speedup=5.0))])
    assert found["fast_1"] == found["mean_speedup"] == 0.0


def test_an_episode_without_turns_is_incorrect():
    found = summarise([row(), row(turn(speedup=2.0), sample=1)]).last
    assert found["correct"].value == found["compiled"].value == 0.5


def test_nothing_correct_has_no_speedup():
    speedup = summarise([row(turn("WRONG_VALUE"))]).last["geomean_speedup"]
    assert (speedup.value, speedup.low, speedup.high, speedup.n) == (0.0, 0.0, 0.0, 0)


def test_last_and_best_turn_differ():
    rows = [
        row(turn("COMPILE_ERROR"), turn(speedup=3.0), turn("WRONG_VALUE")),
        row(turn(speedup=1.1), turn(speedup=0.9), turn(speedup=1.6), sample=1),
    ]
    summary = summarise(rows)
    assert summary.last["fast_1"].value == 0.5
    assert summary.best["fast_1"].value == 1.0
    assert summary.best["geomean_speedup"].value == pytest.approx(math.sqrt(3.0 * 1.6))


def test_best_by_turn_is_the_best_so_far():
    rows = [
        row(turn("COMPILE_ERROR"), turn(speedup=3.0), turn("WRONG_VALUE")),
        row(turn(speedup=0.5), sample=1),
    ]
    points = summarise(rows).best_by_turn
    assert [p.turn for p in points] == [1, 2, 3]
    assert [p.fast_1.value for p in points] == [0.0, 0.5, 0.5]
    assert [p.correct.value for p in points] == [0.5, 1.0, 1.0]


def test_best_prefers_correct_over_noise_and_earlier_of_equals():
    noisy = row(turn("WRONG_VALUE"), turn(too_noisy=True), turn("TIMEOUT"))
    assert noisy.best().turn == 1
    assert row(turn(speedup=2.0), turn(speedup=2.0)).best().turn == 0


def test_a_row_with_a_fault_in_any_turn_is_left_out():
    rows = [row(turn("INFRA_ERROR"), turn(speedup=2.0)), row(turn("WRONG_VALUE"), sample=1)]
    assert summarise(rows).last["correct"].n == 1
    assert values(rows)["correct"] == 0.0


def test_levels_apart():
    rows = [row(turn(speedup=2.0), level=1), row(turn("TIMEOUT"), task="b", level=2)]
    subsets = summarise(rows).subsets
    assert [subsets[f"level {level}"].last["fast_1"].value for level in (1, 2)] == [1.0, 0.0]


@pytest.mark.parametrize(
    ("n", "c", "k", "expected"),
    [(4, 1, 1, 0.25), (4, 1, 2, 0.5), (4, 2, 2, 5 / 6), (4, 0, 4, 0.0), (4, 3, 2, 1.0), (8, 2, 4, 1 - 15 / 70)],
)
def test_pass_at_k(n, c, k, expected):
    assert pass_at_k(n, c, k) == pytest.approx(expected)


@pytest.mark.parametrize("k", [0, 3])
def test_pass_at_k_needs_k_samples(k):
    with pytest.raises(ValueError, match=r"1\.\.2"):
        pass_at_k(2, 1, k)


def test_pass_at_k_of_tasks():
    rows = [row(turn(speedup=s), sample=i) for i, s in enumerate((0.5, 2.0))]
    rows += [row(turn("TIMEOUT"), task="b", sample=i) for i in range(2)]
    summary = summarise(rows)
    assert {k: e.value for k, e in summary.pass_at_k.items()} == {"1": 0.5, "2": 0.5}
    assert {k: e.value for k, e in summary.fast_1_at_k.items()} == {"1": 0.25, "2": 0.5}


def test_interval_resamples_tasks_not_rows():
    """Two tasks of 50 equal rows: whole tasks are 0 or 1, so the interval of the mean is all of [0, 1]."""
    clustered = ratio_estimate([0.0, 50.0], [50.0, 50.0])
    assert (clustered.value, clustered.low, clustered.high, clustered.n) == (0.5, 0.0, 1.0, 100)


def test_interval_agrees_with_the_normal_one_for_many_tasks():
    """400 Bernoulli tasks with p = 1/4: standard error √(p(1−p)/400) = 0.02165, half-width 1.96 of it."""
    found = ratio_estimate([1.0] * 100 + [0.0] * 300, [1.0] * 400)
    assert found.low == pytest.approx(0.25 - 1.96 * 0.02165, abs=0.006)
    assert found.high == pytest.approx(0.25 + 1.96 * 0.02165, abs=0.006)


def test_interval_is_seeded_and_independent_of_row_order(mixed):
    rows = [*mixed, *(row(turn(speedup=1 + i / 7), task=f"t{i}") for i in range(20))]
    assert summarise(rows, seed=3) == summarise(rows[::-1], seed=3)
    assert summarise(rows, seed=3) != summarise(rows, seed=4)


def test_summary_round_trip_has_figures_at_the_top(mixed):
    summary = summarise(mixed, finished="2030-01-01T00:00:00+00:00")
    data = summary.to_json()
    assert data["fast_1.2"].keys() == {"value", "low", "high", "n"}
    assert GradeSummary.from_json(data) == summary


def test_tables_show_value_and_interval(mixed):
    before, after = summarise(mixed[:1]), summarise(mixed[4:5])
    markdown = render_markdown({"before": before, "af|ter": after})
    assert "| correct | 1.000 [1.000, 1.000] | 0.000 [0.000, 0.000] |" in markdown
    assert "| geomean_speedup | 1.000 [1.000, 1.000] | – |" in markdown
    assert "af\\|ter" in markdown
    assert [column.header for column in render_table({"x": before}).columns] == ["last turn, 95 % intervals", "x"]


def test_a_graded_turn_keeps_the_verdicts_figures():
    verdict = Verdict(outcome=Outcome.CORRECT, speedup=1.5, speedup_interval=(1.4, 1.6), coverage=0.9, compiled=True)
    graded = GradedTurn.of(2, verdict, "class ModelNew: ...")
    assert graded.measured_speedup == 1.5
    assert (graded.turn, graded.coverage, graded.compiled, graded.code) == (2, 0.9, True, "class ModelNew: ...")


def test_figures_are_given_without_defective_tasks_too():
    right = GradedTurn(turn=0, outcome=Outcome.CORRECT, compiled=True, speedup=2.0)
    wrong = GradedTurn(turn=0, outcome=Outcome.WRONG_VALUE, compiled=True)
    rows = [row(right, task="a"), row(wrong, task="b"), row(right, task="c").model_copy(update={"defective": True})]
    summary = summarise(rows)
    assert summary.last["correct"].value == pytest.approx(2 / 3)
    assert summary.subsets["without defective"].last["correct"].value == 0.5
    assert (summary.n.tasks, summary.n.defective_tasks) == (3, 1)
    cells = dict(table_rows({"m": summary}))
    assert cells["defective tasks"] == ["1 of 3"]
    assert cells["without defective: correct"][0].startswith("0.500")


def test_latex_is_escaped(mixed):
    latex = render_latex({"50%_a\\b": summarise(mixed[:1])})
    assert r"last turn, 95 \% intervals & 50\%\_a\textbackslash{}b \\" in latex
    assert r"fast\_1.2\_ge & 0.000 [0.000, 0.000] \\" in latex
    assert latex.count(r"\\" + "\n") == latex.count(" & ") == len(table_rows({"m": summarise(mixed[:1])})) + 1


@pytest.mark.parametrize("count", [1, 2, 3])
def test_the_terminal_table_fits_80_columns(mixed, count):
    """Nothing is cut: every interval's both ends stand there whole."""
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(render_table({f"run-{i}": summarise(mixed) for i in range(count)}))
    lines = console.export_text().splitlines()
    assert max(map(len, lines)) <= 80
    assert "…" not in "".join(lines)
    assert "".join(lines).count("[0.") == count * sum(
        "[0." in cells[0] for _, cells in table_rows({"m": summarise(mixed)})
    )
