"""Bad input to the training commands: one line on stderr, exit code 2, nothing half-written."""

import subprocess
import sys

import pytest

CASES = {
    "missing preset": (["train", "no_such_preset"], "no_such_preset: no such file"),
    "unknown field": (["train", "qwen3_8b_skill", "skill.kk=4"], "skill.kk: unknown field"),
    "bad value": (["train", "qwen3_8b_skill", "skill.k=many"], "skill.k:"),
    "no equals sign": (["train", "qwen3_8b_skill", "skill.k"], "expected key=value"),
    "missing sft config": (["sft", "train", "nowhere.yaml"], "nowhere.yaml: no such file"),
    "too few tasks": (["sft", "build", "out", "tasks.limit=2", "measured_tasks=5"], "measured_tasks=5"),
    "unknown operator": (["sft", "build", "out", "tasks.options={operators: [fly]}"], "fly"),
    "quickstart field": (["quickstart", "--run-dir", "run", "rl.rl.stepz=1"], "rl.stepz: unknown field"),
}


@pytest.mark.parametrize(("arguments", "message"), CASES.values(), ids=CASES.keys())
def test_bad_input_is_one_line_and_exit_code_2(tmp_path, arguments, message):
    result = subprocess.run(
        [sys.executable, "-c", "from davinci_kernel.cli import main; main()", *arguments],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 2, result.stderr
    assert message in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert result.stdout == ""
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_presets_carry_the_published_values():
    result = subprocess.run(
        [
            sys.executable,
            "-c",
            "from davinci_kernel.cli import main; main()",
            "train",
            "qwen3_14b_skill",
            "--dry-run",
            "skill.k=4",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    for line in ("learning_rate: 1.0e-06", "k: 4", "summary_n: 8", "batch_tasks: 16", "model_path: Qwen/Qwen3-14B"):
        assert line in result.stdout
