"""Every exploit and every honest control under `triton/` and `cuda/`, on a CUDA device (marker `gpu`)."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from headers import fits, header

from davinci_kernel.gym import Candidate, EvalSettings, GymPool, Outcome, Verdict, has_cuda
from davinci_kernel.tasks import Task

HERE = Path(__file__).parent
FILES = [path for backend in ("triton", "cuda") for path in sorted((HERE / backend).glob("*.py"))]
SETTINGS = EvalSettings(num_correct_trials=2, min_processes=2, max_processes=3, rounds=6, run_timeout=10.0)


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_the_header_says_what_is_required(path: Path) -> None:
    required = header(path, "required")
    assert required
    if required == "NONE":
        return
    assert (HERE / "gpu_tasks" / header(path, "task")).is_file()
    assert all(Outcome(alternative.partition(":")[0]) for alternative in required.split("|"))


@pytest.fixture(scope="module")
def judge() -> Iterator[Callable[[Path], Verdict]]:
    loop = asyncio.new_event_loop()
    pool = GymPool(SETTINGS, cache_verdicts=False)

    def run(path: Path) -> Verdict:
        name = header(path, "task")
        task = Task(f"adversarial/{name}", (HERE / "gpu_tasks" / name).read_text())
        candidate = Candidate.model_validate({"code": path.read_text(), "backend": path.parent.name})
        return loop.run_until_complete(pool.evaluate(task, candidate))

    yield run
    loop.run_until_complete(pool.close())
    loop.close()


@pytest.mark.gpu
@pytest.mark.skipif(not has_cuda(), reason="needs a CUDA device")
@pytest.mark.parametrize(
    "path",
    [path for path in FILES if header(path, "required") != "NONE"],
    ids=lambda path: f"{path.parent.name}-{path.stem}",
)
def test_candidate_gets_the_required_verdict(path: Path, judge: Callable[[Path], Verdict]) -> None:
    if "cupy" in path.read_text() and importlib.util.find_spec("cupy") is None:
        pytest.skip("needs CuPy")
    verdict = judge(path)
    alternatives = header(path, "required").split("|")
    found = f"{verdict.outcome.value} {verdict.hack or ''} coverage {verdict.coverage}: {verdict.message}"
    assert any(fits(verdict, required) for required in alternatives), f"required {alternatives}, got {found}"
