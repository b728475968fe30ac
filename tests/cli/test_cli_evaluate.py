"""`davinci evaluate` and `davinci doctor` as a user calls them."""

import json
import subprocess
import sys

import pytest

from davinci_kernel.gym import missing_package

REFERENCE = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return x * 2.5
def get_inputs():
    return [torch.randn(64, 64)]
def get_init_inputs():
    return []
"""
CANDIDATE = '''
import torch
from davinci_kernel.jit import load_cpp
K = load_cpp(r"""
extern "C" void scale(const float* x, float* out, long n) { for (long i = 0; i < n; i++) out[i] = x[i] * 2.5f; }
""")
class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        K.scale(x, out, x.numel())
        return out
'''


@pytest.fixture
def files(tmp_path):
    (tmp_path / "ref.py").write_text(REFERENCE)
    (tmp_path / "cand.py").write_text(CANDIDATE)
    return tmp_path


def davinci(folder, *arguments):
    command = [sys.executable, "-c", "from davinci_kernel.cli import main; main()", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)


def test_json_record(files):
    done = davinci(files, "evaluate", "ref.py", "cand.py", "--json", "--no-measure", "--trials", "1")
    record = json.loads(done.stdout)
    assert done.returncode == 0, done.stderr
    assert record["outcome"] == "CORRECT", record["message"]
    names = {"outcome", "message", "speedup", "speedup_interval", "reference_ms", "kernel_ms", "coverage", "hack"}
    assert names <= record.keys()
    assert record["provenance"]["settings"]["num_correct_trials"] == 1
    assert record["provenance"]["hardware"]["threads"] >= 1


def test_readable_verdict_of_a_wrong_candidate_exits_0(files):
    (files / "cand.py").write_text(CANDIDATE.replace("2.5f", "2.6f"))
    done = davinci(files, "evaluate", "ref.py", "cand.py", "--no-measure")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("WRONG_VALUE")


@pytest.mark.parametrize(
    ("reference", "arguments", "part"),
    [
        (REFERENCE, ["missing.py", "cand.py"], "missing.py: no such file"),
        (REFERENCE, ["ref.py", "missing.py"], "missing.py: no such file"),
        (REFERENCE, [".", "cand.py"], "is a directory"),
        (REFERENCE, ["ref.py", "cand.py", "--backend", "metal"], "--backend metal"),
        pytest.param(
            REFERENCE,
            ["ref.py", "cand.py", "--backend", "cuda"],
            "backend cuda: cuda.bindings is not installed; pip install 'davinci-kernel[cuda]'",
            marks=pytest.mark.skipif(not missing_package("cuda"), reason="the extra is installed"),
        ),
        (REFERENCE, ["ref.py", "cand.py", "--tolerance", "none"], "--tolerance none"),
        (REFERENCE, ["ref.py", "cand.py", "--tolerance-of", "float32=lots"], "--tolerance-of float32=lots"),
        (REFERENCE, ["ref.py", "cand.py", "--tolerance-of", "int8=1"], "--tolerance-of int8=1"),
        (REFERENCE, ["ref.py", "cand.py", "--baseline", "jax"], "--baseline jax"),
        (REFERENCE, ["ref.py", "cand.py", "--timeout", "-1"], "--timeout -1"),
        (REFERENCE.replace("def get_inputs", "def inputs"), ["ref.py", "cand.py"], "ref.py: defines no get_inputs"),
        (REFERENCE.replace("class Model(", "class Net("), ["ref.py", "cand.py"], "ref.py: defines no Model"),
        (REFERENCE + "def broken(:\n", ["ref.py", "cand.py"], "ref.py: not valid Python"),
    ],
)
def test_unusable_arguments_exit_2_with_one_line(files, reference, arguments, part):
    (files / "ref.py").write_text(reference)
    done = davinci(files, "evaluate", *arguments)
    assert done.returncode == 2
    assert part in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert done.stdout == ""


def test_doctor_names_the_layers(files):
    done = davinci(files, "doctor")
    assert done.returncode == 0, done.stderr
    for word in ("compiler", "backend cpp", "torch", "sandbox", "CUDA"):
        assert word in done.stdout


def test_doctor_prints_instructions_as_they_are(monkeypatch, capsys):
    """Brackets are an extra's name, not markup."""
    import davinci_kernel.gym
    from davinci_kernel.cli import main

    monkeypatch.setattr(
        davinci_kernel.gym, "missing_package", lambda backend: f"pip install 'davinci-kernel[{backend}]'"
    )
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr("sys.argv", ["davinci", "doctor"])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert not stopped.value.code
    shown = capsys.readouterr().out
    assert "davinci-kernel[triton]" in shown
    assert "davinci-kernel[cuda]" in shown
