"""`davinci grade` with a real (untrained) model: what it writes, prints and refuses."""

import json

import pytest
import typer
from typer.testing import CliRunner

from davinci_kernel.cli.grade import register
from davinci_kernel.errors import UserError
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
    return CliRunner().invoke(app, [*map(str, arguments)], env={"COLUMNS": "200"})


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
