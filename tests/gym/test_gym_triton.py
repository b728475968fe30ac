"""Triton candidates without a GPU: interpreted for correctness, compiled ahead of time, never timed."""

import asyncio
from pathlib import Path

import pytest

from davinci_kernel.gym import Candidate, EvalSettings, GymPool, Outcome, has_cuda
from davinci_kernel.tasks import Task

pytest.importorskip("triton.language")  # a directory of the tests is called triton
pytestmark = pytest.mark.skipif(has_cuda(), reason="with a GPU, candidates run on it")

FILES = Path(__file__).parent.parent / "adversarial" / "triton"
SILU = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return x * torch.sigmoid(x)
def get_inputs():
    return [torch.randn(16, 100)]
def get_init_inputs():
    return []
"""


@pytest.fixture(scope="module")
def verdicts():
    names = [
        "honest_plain",
        "honest_autotuned",
        "zeros",
        "half_precision",
        "kernel_for_show",
        "torch_operators",
        "try_fallback",
        "input_mutation",
        "compile_error",
    ]

    async def judge():
        async with GymPool(EvalSettings(num_correct_trials=2), cache_verdicts=False) as gym:
            task = Task("silu", SILU)
            pairs = [(task, Candidate(code=(FILES / f"{n}.py").read_text(), backend="triton")) for n in names]
            return dict(zip(names, await gym.evaluate_many(pairs), strict=True))

    return asyncio.run(judge())


@pytest.mark.parametrize("name", ["honest_plain", "honest_autotuned"])
def test_honest_kernels_are_correct_compiled_and_not_timed(verdicts, name):
    verdict = verdicts[name]
    assert verdict.outcome is Outcome.CORRECT, verdict.message
    assert (verdict.speedup, verdict.coverage, verdict.compiled) == (None, None, True)
    assert "no CUDA device to time it" in verdict.message
    (kernel,) = verdict.provenance["compiled_ahead"]["kernels"]
    assert kernel["kernel"] == "silu_kernel"
    assert kernel["cubin_bytes"] > 1000


@pytest.mark.parametrize(
    ("name", "outcome", "hack"),
    [
        ("zeros", Outcome.WRONG_VALUE, None),
        ("half_precision", Outcome.WRONG_VALUE, None),
        ("kernel_for_show", Outcome.HACK, "ghost"),
        ("torch_operators", Outcome.HACK, "torch-fallback"),
        ("try_fallback", Outcome.HACK, "torch-fallback"),
        ("input_mutation", Outcome.HACK, "input-mutation"),
        ("compile_error", Outcome.COMPILE_ERROR, None),
    ],
)
def test_faults_and_hacks_are_seen_by_the_interpreter_too(verdicts, name, outcome, hack):
    assert (verdicts[name].outcome, verdicts[name].hack) == (outcome, hack), verdicts[name].message


def test_a_compile_error_names_the_line(verdicts):
    assert "no_such_function" in verdicts["compile_error"].message
