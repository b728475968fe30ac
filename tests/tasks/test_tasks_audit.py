"""The task audit: every finding on a task made for it, an honest task without any, and the results file."""

import ast
import json
import sys
import time
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from davinci_kernel import cli
from davinci_kernel.errors import UserError
from davinci_kernel.gym._compare import TolerancePolicy, compare_outputs
from davinci_kernel.tasks import AuditRow, Task, audit_tasks, count_findings
from davinci_kernel.tasks import _audit_probe as probe_module
from davinci_kernel.tasks._audit_probe import PLAIN, TOLERANCES, accepts, probe

CODE = """\
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        {init}

    def forward(self, x):
        {body}


def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return []
"""
SCALED = {"default", "kernelgym"}
PLAINS = {"kernelbench", "plain_1e-2"}


def code(body: str, init: str = "pass", inputs: str = "torch.rand(8, 16)") -> str:
    return CODE.format(init=init, body=body if "return" in body else f"return {body}", inputs=inputs)


def found(source: str) -> dict[str, set[str | None]]:
    """Tolerances by finding."""
    result: dict[str, set[str | None]] = {}
    for finding in probe(source)["findings"]:
        result.setdefault(finding["finding"], set()).add(finding["tolerance"])
    return result


def is_defective(source: str, tolerance: str = "default") -> bool:
    row = AuditRow(task_id="t", content_hash="h", findings=probe(source)["findings"])
    return bool(row.defects(tolerance))


ALWAYS = {None}
NO_SIGNAL = {
    "constant_output": ALWAYS, "input_independent": ALWAYS, "accepts_constant": SCALED, "accepts_other_output": SCALED,
    "weak_signal": PLAINS,
}  # fmt: skip


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        pytest.param(code("x * 2"), {}, id="honest"),
        pytest.param(code("(x.sum(), {'max': x.max(dim=1)})"), {}, id="honest-structure"),
        pytest.param(code("x > 0.5"), {}, id="honest-bool"),
        pytest.param(code("torch.complex(x, x * x)"), {}, id="honest-complex"),
        pytest.param(code("x.relu_()", inputs="torch.randn(8, 16)"), {}, id="honest-in-place"),
        pytest.param(code("x * 0"), {"zero_output": ALWAYS, "accepts_zeros": SCALED} | NO_SIGNAL, id="zero"),
        pytest.param(code("x > 2"), {"zero_output": ALWAYS, "accepts_zeros": SCALED} | NO_SIGNAL, id="zero-bool"),
        pytest.param(code("x * 0 + 3"), NO_SIGNAL, id="constant"),
        pytest.param(
            code("x * 0 + torch.arange(16.0)"),
            {"input_independent": ALWAYS, "accepts_other_output": SCALED, "weak_signal": PLAINS},
            id="input-independent",
        ),
        # a signal of 0.05 on 1000: less than 1e-4 * 1000, but no small part of its own spread
        pytest.param(code("1000 + 0.05 * x"), {"weak_signal": PLAINS}, id="small-signal-on-an-offset"),
        # 5e-3 is less than the plain rule's 1e-2 and more than its 1e-4
        pytest.param(code("5e-3 * x"), {"weak_signal": {"plain_1e-2"}}, id="small-signal"),
        # one number, 1 + 9e-3 * U(0, 1): two draws differ by less than 1e-2 of it, and most likely by more than 4e-4
        pytest.param(
            code("1 + 9e-3 * x.sum()", inputs="torch.rand(1)"),
            {"accepts_constant": {"kernelgym"}, "accepts_other_output": {"kernelgym"}, "weak_signal": {"plain_1e-2"}},
            id="nearly-constant-number",
        ),
        # a mean after a centring is 0 but for rounding; in float64 its rounding is a billionth of that
        pytest.param(
            code("(x - x.mean(dim=1, keepdim=True)).mean(dim=1)", inputs="torch.rand(64, 1000)"),
            {"constant_output": ALWAYS, "weak_signal": PLAINS},
            id="constant-under-rounding",
        ),
        pytest.param(code("torch.nn.functional.dropout(x)"), {"random_output": ALWAYS}, id="random"),
        pytest.param(
            code("COUNT.append(0); return x * len(COUNT)").replace("class Model", "COUNT = []\nclass Model"),
            {"nondeterministic": ALWAYS},
            id="nondeterministic",
        ),
        pytest.param(code("x / (x > 0.5)"), {"non_finite": ALWAYS}, id="non-finite"),
        pytest.param(
            code("self.norm(x)", init="self.norm = nn.LayerNorm(16)"), {"identity_parameters": ALWAYS}, id="identity"
        ),
        # running statistics and plain attributes start anew in every run
        pytest.param(
            code("self.norm(x)", init="self.norm = nn.BatchNorm1d(16)"), {"identity_parameters": ALWAYS}, id="state"
        ),
        pytest.param(
            code("self.w += 1; return x * self.w", init="self.w = nn.Parameter(torch.rand(16))"),
            {},
            id="changed-weights",
        ),
        pytest.param(code("self.n += 1; return x * self.n", init="self.n = 1"), {}, id="plain-state"),
    ],
)
def test_findings(source, expected):
    assert found(source) == expected


def test_what_makes_a_task_defective():
    assert not is_defective(code("x * 2"))
    assert is_defective(code("x * 0"))
    assert is_defective(code("torch.nn.functional.dropout(x)"))
    assert not is_defective(code("self.norm(x)", init="self.norm = nn.LayerNorm(16)"))
    nearly_constant = code("1 + 9e-3 * x.sum()", inputs="torch.rand(1)")
    assert [is_defective(nearly_constant, name) for name in ("default", "kernelgym", "kernelbench")] == [
        False, True, False,
    ]  # fmt: skip
    small = code("1e-6 * x")
    assert [is_defective(small, name) for name in ("default", "kernelbench")] == [False, True]


def test_reasons_have_names_and_figures():
    findings = probe(code("self.norm(x) * 0", init="self.norm = nn.LayerNorm(16)"))["findings"]
    reasons = {finding["finding"]: finding["reason"] for finding in findings}
    assert reasons["identity_parameters"] == "2 all 0 or all 1: norm.weight, norm.bias"
    assert reasons["zero_output"] == "all 256 elements of two inputs' outputs are 0"
    assert not any("\n" in reason for reason in reasons.values())


def test_fixed_inputs_are_named():
    assert "inputs" in probe(code("x * 2", inputs="torch.ones(8, 16)"))["figures"]
    assert "inputs" not in probe(code("x * 2"))["figures"]


def test_shapes_that_depend_on_the_data():
    assert found(code("x[x > 0.5]")) == {}


def test_weights_and_inputs_are_independent_draws():
    """Weights and inputs of one random sequence would be correlated: the diagonal below would be all 1."""
    source = code("torch.stack([x, self.w])", init="self.w = nn.Parameter(torch.rand(64))", inputs="torch.rand(64)")
    reference = probe_module.Reference(source, "Model", 0, "cpu")
    x, weights = reference.run(0, 0)["output"]
    assert abs(torch.corrcoef(torch.stack([x, weights]))[0, 1].item()) < 0.5


def candidates(reference: torch.Tensor) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    noise = torch.randn(reference.shape, generator=generator, dtype=torch.float64)
    spread = reference.double().std() if reference.numel() > 1 else reference.double().abs().max()
    scales = (0, 1e-6, 1e-5, 3e-5, 1e-4, 1e-3, 3e-3, 1e-2, 0.1)
    close = [(reference.double() + noise * scale * spread).to(reference.dtype) for scale in scales]
    ends = [torch.zeros_like(reference), torch.full_like(reference, reference.double().mean().item())]
    return [*close, *ends, torch.full_like(reference, torch.nan)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_tolerances_agree_with_the_gym(dtype):
    generator = torch.Generator().manual_seed(0)
    normal = torch.randn(5000, generator=generator, dtype=torch.float64)
    references = [normal, normal + 100, normal * 1e-6, normal[:5], normal[:1], torch.full_like(normal, 3.0)]
    references += [torch.where(normal > 3.4, normal, 0.0), torch.where(normal > 3, torch.inf, normal)]
    policies = {name: TolerancePolicy.from_name(name) for name in ("default", "kernelgym", "kernelbench")}
    answers = set()
    for reference in (values.to(dtype) for values in references):
        for name, policy in policies.items():
            for candidate in candidates(reference):
                taken = compare_outputs(reference, candidate, policy) is None
                assert accepts(reference, candidate, (TOLERANCES | PLAIN)[name]) is taken
                answers.add(taken)
    assert answers == {True, False}


def test_the_probe_needs_nothing_but_torch():
    tree = ast.parse(Path(probe_module.__file__).read_text())
    names = {n.name for node in ast.walk(tree) if isinstance(node, ast.Import) for n in node.names}
    names |= {node.module or "." for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.partition(".")[0] for name in names} - sys.stdlib_module_names == {"torch"}


def task(name: str, source: str) -> Task:
    return Task(name, source, name=name, level=1)


@pytest.fixture(scope="module")
def audited(tmp_path_factory):
    """Tasks and their results file."""
    tasks = [
        task("zero", code("x * 0")),
        task("honest", code("x * 2")),
        task("raises", code("raise KeyError('no such key'); return x")),
        task("dies", code("import os; os.kill(os.getpid(), 9); return x")),
    ]
    out = tmp_path_factory.mktemp("audit") / "results.jsonl"
    return tasks, out, audit_tasks(tasks, out, workers=2)


def test_results_come_in_order_and_failures_are_not_defects(audited):
    tasks, out, rows = audited
    assert [row.task_id for row in rows] == [task.task_id for task in tasks]
    assert [row.content_hash for row in rows] == [task.content_hash for task in tasks]
    assert [bool(row.defects()) for row in rows] == [True, False, False, False]
    assert [row.failure for row in rows[:3]] == [None, None, "error: KeyError: 'no such key'"]
    assert rows[3].failure.startswith("memory: the process was killed")
    assert count_findings(rows)["failed"] == 2
    assert count_findings(rows)["accepts_zeros@default"] == 1
    assert len(out.read_text().splitlines()) == 5


def test_a_cut_off_line_is_dropped_and_only_its_task_run_again(audited, tmp_path):
    tasks, out, rows = audited
    lines = out.read_bytes().splitlines(keepends=True)
    cut = tmp_path / "cut.jsonl"
    cut.write_bytes(b"".join(lines[:-1]) + lines[-1][:40])
    lost = json.loads(lines[-1])["task_id"]
    calls = []
    again = audit_tasks(tasks, cut, progress=lambda done, total, last: calls.append((done, total, last)))
    assert calls == [(3, 4, ""), (4, 4, lost)]
    assert cut.read_bytes().splitlines(keepends=True)[:-1] == lines[:-1]
    assert [row.findings for row in again] == [row.findings for row in rows]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"audit": 1, "seed": 5, "device": "cpu"}\n', "has seed 5, this run has seed 0; give another --out"),
        (
            b'{"audit": 1, "seed": 0, "device": "cuda"}\n',
            "has device cuda, this run has device cpu; give another --out",
        ),
        (b'{"task_id": "x"}\n', "not an audit's results; give another --out"),
        (b"# notes\n", "1: not a line of an audit; give another --out"),
        (b"notes without an end", "not an audit's results; give another --out"),
    ],
)
def test_another_file_is_refused_and_left_alone(tmp_path, content, message):
    out = tmp_path / "other.jsonl"
    out.write_bytes(content)
    with pytest.raises(UserError, match=message) as error:
        audit_tasks([task("honest", code("x * 2"))], out)
    assert str(error.value).startswith(str(out))
    assert out.read_bytes() == content


def test_limits_end_a_task_and_higher_ones_run_it_again(tmp_path):
    """A sleep of a minute ends at once; 1 GiB of output is more than the process may have."""
    tasks = [
        task("sleeps", code("import time; time.sleep(60); return x")),
        task("large", code("torch.ones(2**28)[0] + x")),
    ]
    out = tmp_path / "limits.jsonl"
    started = time.monotonic()
    rows = audit_tasks(tasks, out, timeout=1.0, memory=0.75)
    assert time.monotonic() - started < 30
    assert rows[0].failure == "timeout: not done after 1 s"
    assert rows[1].failure.startswith("memory: ")
    limits = probe_module.Limits
    results, _ = probe_module.read_results(out, probe_module.settings_of(0, "cpu"))
    todo = [{"task_id": t.task_id, "code": t.code} for t in tasks]
    assert probe_module.unfinished(todo, results, limits(1.0, 0.75)) == []
    assert probe_module.unfinished(todo, results, limits(1.0, 0.0)) == todo


@pytest.fixture
def davinci(monkeypatch):
    return lambda *arguments: CliRunner().invoke(cli.app, ["tasks", "audit", *arguments], env={"COLUMNS": "200"})


def test_the_command_prints_defective_tasks_and_counts(davinci, audited, tmp_path):
    tasks, out, _ = audited
    source = tmp_path / "tasks.jsonl"
    rows = [{"task_id": t.task_id, "name": t.name, "level": t.level, "code": t.code} for t in tasks]
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    table = davinci(str(source), "--out", str(out), "--memory", "0").stdout
    assert "1 of 2 audited tasks are defective at tolerance default" in table
    assert "zero_output, constant_output, input_independent, accepts_zeros" in table
    assert "not audited: raises: error: KeyError: 'no such key'" in table
    data = json.loads(davinci(str(source), "--out", str(out), "--memory", "0", "--json").stdout)
    assert (data["tasks"], data["audited"], data["defective"]) == (4, 2, ["zero"])
    assert set(data["failed"]) == {"raises", "dies"}
    assert data["counts"]["zero_output"] == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("gone.jsonl",), "gone.jsonl: no such file"),
        (("suite", "--timeout", "0"), "--timeout 0: expected a positive number of seconds"),
        (("suite", "--out", "audit.csv"), "--out audit.csv: expected a file whose name ends in .jsonl"),
        (("suite", "--device", "tpu"), "--device tpu: expected cpu, cuda or cuda:N"),
        (("suite", "--device", "cuda:99"), "--device cuda:99: torch sees"),
        (("suite", "-o", "size"), "--option size: expected key=value"),
        (("suite", "--out", "other.jsonl"), "other.jsonl: has seed 5, this run has seed 0; give another --out"),
    ],
)
def test_bad_arguments_exit_with_one_line(monkeypatch, capsys, tmp_path, arguments, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other.jsonl").write_text('{"audit": 1, "seed": 5, "device": "cpu"}\n')
    monkeypatch.setattr("sys.argv", ["davinci", "tasks", "audit", *arguments])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    out, err = capsys.readouterr()
    assert (stop.value.code, out) == (2, "")
    assert err.startswith(f"davinci: {message}")
    assert err.count("\n") == 1
