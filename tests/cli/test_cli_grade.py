"""`davinci grade` with a real (untrained) model: what it writes, prints and refuses."""

import json

import pytest
import typer
from typer.testing import CliRunner

from davinci_kernel.cli.grade import register
from davinci_kernel.errors import UserError
from davinci_kernel.grading import GradedTurn, GradeRow, summarise
from davinci_kernel.gym import Outcome
from davinci_kernel.llm import save_model, small_model, train_tokenizer


@pytest.fixture(scope="module")
def model_path(tmp_path_factory):
    path = tmp_path_factory.mktemp("model")
    tokenizer = train_tokenizer(["import torch\nclass ModelNew: pass\n"], 400)
    save_model(small_model(tokenizer, layers=1, width=16, heads=2, mlp=16, max_positions=4096, seed=0), tokenizer, path)
    return path


def davinci_grade(*arguments):
    app = typer.Typer()
    register(app)
    return CliRunner().invoke(app, ["grade", *map(str, arguments)], env={"COLUMNS": "200"})


def tiny(model_path, out, *more):
    sizes = ("--limit", 2, "--samples", 2, "--turns", 1, "--max-response-tokens", 8, "--device", "cpu")
    return davinci_grade(model_path, "--out", out, *sizes, *more)


def test_an_untrained_model_gets_an_honest_zero(model_path, tmp_path):
    result = tiny(model_path, tmp_path / "run", "--json")
    assert result.exit_code == 0, result.output
    summary = json.loads(result.stdout)
    assert summary == json.loads((tmp_path / "run" / "summary.json").read_text())
    assert (summary["correct"]["value"], summary["fast_1"]["value"], summary["fast_1"]["n"]) == (0.0, 0.0, 4)
    rows = [json.loads(line) for line in (tmp_path / "run" / "results.jsonl").read_text().splitlines()]
    assert len(rows) == 4
    assert not any(row["turns"][0]["compiled"] for row in rows)
    assert all(row["task_id"].startswith("gen/heldout/") for row in rows)


def test_repeating_the_command_continues_and_prints_the_table(model_path, tmp_path):
    tiny(model_path, tmp_path / "run")
    before = (tmp_path / "run" / "results.jsonl").read_bytes()
    result = tiny(model_path, tmp_path / "run")
    assert result.exit_code == 0, result.output
    assert (tmp_path / "run" / "results.jsonl").read_bytes() == before
    assert "fast_1.5_ge" in result.stdout
    assert "0.000 [0.000, 0.000]" in result.stdout


def test_other_settings_are_refused(model_path, tmp_path):
    tiny(model_path, tmp_path / "run")
    result = tiny(model_path, tmp_path / "run", "--temperature", 0.5)
    assert isinstance(result.exception, UserError)
    assert "rollout" in str(result.exception)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--library", "nowhere"), "--library nowhere: no such folder"),
        (("--tasks", "nowhere.jsonl"), "nowhere.jsonl"),
    ],
)
def test_unusable_arguments_are_named(model_path, tmp_path, options, message):
    result = tiny(model_path, tmp_path / "run", *options)
    assert isinstance(result.exception, UserError)
    assert message in str(result.exception)
    assert "\n" not in str(result.exception)
    assert not (tmp_path / "run").exists()


def test_a_missing_model_is_named_before_anything_is_written(tmp_path):
    result = tiny(tmp_path / "no-model", tmp_path / "run")
    assert isinstance(result.exception, UserError)
    assert "no-model" in str(result.exception)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("options", [("--samples", 0), ("--turns", 0), ("--backend", "fortran")])
def test_values_out_of_range_exit_with_2(model_path, options):
    assert davinci_grade(model_path, *options).exit_code == 2


def davinci(*arguments):
    app = typer.Typer()
    register(app)
    return CliRunner().invoke(app, [*map(str, arguments)], env={"COLUMNS": "80"})


def write_run(folder, speedups, **caliber):
    """A finished run: problem 1, 2, ... of level 1 with these speedups."""
    folder.mkdir()
    (folder / "grade.json").write_text(json.dumps({"model": folder.name, "settings": {"rounds": 8}} | caliber))
    rows = [
        GradeRow(
            task_id=f"kernelbench/1/{i}",
            name=f"{i}_op",
            level=1,
            problem_id=i,
            sample=0,
            turns=(
                GradedTurn(turn=0, outcome=Outcome.CORRECT, compiled=True, speedup=s, kernel_ms=2.0, code="pass\n"),
            ),
        )
        for i, s in enumerate(speedups, start=1)
    ]
    (folder / "results.jsonl").write_text("".join(r.model_dump_json() + "\n" for r in rows))
    (folder / "summary.json").write_text(json.dumps(summarise(rows).to_json()))
    return folder


def test_a_finished_run_has_its_tables(model_path, tmp_path):
    tiny(model_path, tmp_path / "run")
    assert (tmp_path / "run" / "table.md").read_text().startswith("| last turn, 95 % intervals | run |")
    assert r"fast\_1" in (tmp_path / "run" / "table.tex").read_text()


def test_show_gives_the_same_figures_in_every_format(tmp_path):
    runs = [write_run(tmp_path / name, speedups) for name, speedups in (("a", [1.0, 4.0]), ("b", [0.5, 0.5]))]
    for options in ((), ("--format", "markdown"), ("--format", "latex"), ("--json",)):
        shown = davinci("grade", "show", *runs, *options)
        assert shown.exit_code == 0
        assert "0.500" in shown.stdout or '"value": 0.5' in shown.stdout


def test_compare_prints_wins_losses_and_tests(tmp_path):
    base, run = write_run(tmp_path / "sft", [1.0] * 6), write_run(tmp_path / "rl", [2.0] * 6)
    shown = davinci("grade", "compare", base, run, "--tasks")
    assert shown.exit_code == 0, shown.output
    assert "x2.00 [2.00, 2.00]" in shown.stdout
    assert shown.stdout.count("win ") == 6
    assert max(map(len, shown.stdout.splitlines())) <= 80
    found = json.loads(davinci("grade", "compare", base, run, "--json").stdout)
    assert found[0]["measures"][2]["sign_p"] == 2 / 64


def test_compare_refuses_another_caliber_unless_told(tmp_path):
    base, run = write_run(tmp_path / "a", [1.0]), write_run(tmp_path / "b", [2.0], settings={"rounds": 4})
    refused = davinci("grade", "compare", base, run)
    assert isinstance(refused.exception, UserError)
    assert "settings.rounds: 8 | 4" in str(refused.exception)
    assert "\n" not in str(refused.exception)
    allowed = davinci("grade", "compare", base, run, "--allow-different")
    assert allowed.exit_code == 0
    assert "different caliber: a | b: settings.rounds: 8 | 4" in allowed.stderr


@pytest.mark.parametrize(
    ("names", "message"),
    [(["a"], "at least two runs"), (["a", "a"], "given twice"), (["a", "nowhere"], "nowhere"), (["a", "c"], "no task")],
)
def test_compare_names_what_it_cannot_compare(tmp_path, names, message):
    write_run(tmp_path / "a", [1.0])
    write_run(tmp_path / "c", [])
    result = davinci("grade", "compare", *(tmp_path / name for name in names))
    assert isinstance(result.exception, UserError)
    assert message in str(result.exception)


def test_a_kernelbench_run_comes_in_and_goes_out(tmp_path):
    exported = davinci("grade", "export", write_run(tmp_path / "ours", [2.0, 0.5]), tmp_path / "kb")
    assert exported.exit_code == 0, exported.output
    folder = tmp_path / "kb" / "runs" / "ours_level1"
    imported = davinci("grade", "import", folder, "--out", tmp_path / "back", "--model", "theirs")
    assert imported.exit_code == 0, imported.output
    assert json.loads((tmp_path / "back" / "grade.json").read_text())["settings"]["evaluator"] == "KernelBench"
    assert davinci("grade", "show", tmp_path / "back").exit_code == 0
    refused = davinci("grade", "compare", tmp_path / "ours", tmp_path / "back")
    assert "settings.evaluator: not recorded | KernelBench" in str(refused.exception)
    again = davinci("grade", "import", folder, "--out", tmp_path / "back")
    assert "exists" in str(again.exception)
