"""KernelBench's run folders and baseline times, in both directions."""

import json

import pytest

from davinci_kernel.errors import UserError
from davinci_kernel.grading import (
    BaselineTimes,
    GradedTurn,
    GradeRow,
    export_kernelbench,
    import_kernelbench,
    summarise,
)
from davinci_kernel.gym import Outcome


def result(sample, correct, runtime=-1.0, compiled=True, **metadata):
    hardware = {"hardware": "NVIDIA H100", "device": "cuda:0"}
    return {
        "sample_id": sample,
        "compiled": compiled,
        "correctness": correct,
        "metadata": hardware | metadata,
        "runtime": runtime,
        "runtime_stats": {"mean": runtime} if runtime > 0 else {},
    }


@pytest.fixture
def run_folder(tmp_path):
    """Problem 1: two samples in a list; problem 2: one result without a list, as older versions write it."""
    folder = tmp_path / "kb"
    folder.mkdir()
    results = {
        "1": [result(0, True, 1.25), result(1, False, runtime_error="CUDA error")],
        "2": result(0, False, compiled=False, compilation_error="nvcc"),
        "3": [result(0, False, correctness_issue="Output shape mismatch: Expected (1,), got (2,)")],
        "4": [result(0, False, correctness_issue="Output mismatch")],
    }
    (folder / "eval_results.json").write_text(json.dumps(results))
    (folder / "level_2_problem_1_sample_0_kernel.py").write_text("class ModelNew: ...\n")
    return folder


@pytest.fixture
def times(tmp_path):
    path = tmp_path / "baseline_time_torch.json"
    path.write_text(json.dumps({"level2": {"1_Conv.py": {"mean": 2.5, "std": 0.1}, "2_Gemm.py": {"mean": 4}}}))
    return BaselineTimes(path)


def test_import_reads_verdicts_code_and_speedups(run_folder, times):
    rows = {(r.problem_id, r.sample): r for r in import_kernelbench(run_folder, times)}
    assert {key: r.turns[0].outcome.value for key, r in rows.items()} == {
        (1, 0): "CORRECT",
        (1, 1): "RUNTIME_ERROR",
        (2, 0): "COMPILE_ERROR",
        (3, 0): "WRONG_SHAPE",
        (4, 0): "WRONG_VALUE",
    }
    best = rows[1, 0]
    assert (best.turns[0].speedup, best.turns[0].kernel_ms, best.turns[0].reference_ms) == (2.0, 1.25, 2.5)
    assert (best.problem, best.name, best.turns[0].code) == ("kernelbench/2/1", "1_Conv", "class ModelNew: ...\n")
    assert best.provenance["hardware"] == {"hardware": "NVIDIA H100", "device": "cuda:0"}
    assert rows[2, 0].turns[0].message == "nvcc"
    assert summarise(rows.values()).last["fast_1"].value == 0.2


def test_without_baseline_times_the_results_own_reference_counts(run_folder):
    path = run_folder / "eval_results.json"
    path.write_text(json.dumps({"1": [result(0, True, 2.0) | {"ref_runtime": 3.0}, result(1, True, 2.0)]}))
    assert [r.turns[0].speedup for r in import_kernelbench(run_folder, None)] == [1.5, None]


def graded(problem, *turns, level=1, sample=0, name=None):
    hardware = {"cpu": "Xeon", "device": "cpu"}
    return GradeRow(
        task_id=f"kernelbench/{level}/{problem}",
        name=name or f"{problem}_op",
        level=level,
        problem_id=problem,
        sample=sample,
        turns=turns,
        provenance={"hardware": hardware},
    )


FAST = GradedTurn(
    turn=0, outcome=Outcome.CORRECT, compiled=True, speedup=2.0, kernel_ms=1.0, reference_ms=2.0, code="a"
)
SLOW = GradedTurn(
    turn=1, outcome=Outcome.CORRECT, compiled=True, speedup=0.5, kernel_ms=6.0, reference_ms=3.0, code="b"
)
WRONG = GradedTurn(turn=0, outcome=Outcome.WRONG_VALUE, compiled=True, message="at [0]", code="c")


def test_export_writes_what_import_reads(tmp_path):
    rows = [graded(1, FAST, SLOW), graded(1, WRONG, sample=1), graded(7, FAST, level=3, name="LeNet")]
    folders = export_kernelbench(rows, tmp_path, "mine", "compile", best=True)
    assert [str(f.relative_to(tmp_path)) for f in folders] == [
        "runs/mine_level1",
        "runs/mine_level3",
        "results/timing/mine",
    ]
    baseline = BaselineTimes(folders[2] / "baseline_time_torch_compile_inductor_default.json")
    assert baseline.names == {(1, 1): "1_op", (3, 7): "7_LeNet"}
    back = import_kernelbench(folders[0], baseline)
    assert [(r.sample, r.turns[0].outcome, r.turns[0].speedup, r.turns[0].code) for r in back] == [
        (0, Outcome.CORRECT, 2.0, "a"),
        (1, Outcome.WRONG_VALUE, None, "c"),
    ]
    assert back[1].turns[0].message == "WRONG_VALUE: at [0]"


def test_export_takes_the_last_turn_by_default(tmp_path):
    (folder, timing) = export_kernelbench([graded(1, FAST, SLOW)], tmp_path, "mine", "eager")
    assert json.loads((folder / "eval_results.json").read_text())["1"][0]["runtime"] == 6.0
    assert json.loads((timing / "baseline_time_torch.json").read_text())["level1"]["1_op.py"]["mean"] == 3.0


def test_export_overwrites_nothing_and_says_what_it_cannot_write(tmp_path):
    export_kernelbench([graded(1, FAST)], tmp_path, "mine", "eager")
    with pytest.raises(UserError, match="mine_level1: exists"):
        export_kernelbench([graded(1, FAST)], tmp_path, "mine", "eager")
    with pytest.raises(UserError, match="no task has KernelBench's level"):
        export_kernelbench([graded(1, FAST).model_copy(update={"problem_id": None})], tmp_path, "x", "eager")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[]", "expected a JSON object"),
        ("{}", "no results"),
        ('{"a": [{"correctness": true}]}', "problem a"),
        ('{"1": [3]}', "problem 1"),
    ],
)
def test_malformed_results_are_named(run_folder, content, message):
    (run_folder / "eval_results.json").write_text(content)
    with pytest.raises(UserError, match=message):
        import_kernelbench(run_folder, None)


def test_an_unclear_level_is_asked_for(run_folder):
    (run_folder / "level_1_problem_1_sample_0_kernel.py").write_text("")
    with pytest.raises(UserError, match="levels 1, 2; say with --level"):
        import_kernelbench(run_folder, None)
    assert {r.level for r in import_kernelbench(run_folder, None, level=2)} == {2}


@pytest.mark.parametrize(
    "content", ['{"x": {}}', '{"level1": {"conv.py": {}}}', '{"level1": {"1_a.py": {"mean": "3"}}}']
)
def test_other_files_are_no_baseline_times(tmp_path, content):
    (tmp_path / "t.json").write_text(content)
    with pytest.raises(UserError, match=r"t\.json: "):
        BaselineTimes(tmp_path / "t.json")
