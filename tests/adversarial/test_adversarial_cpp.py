"""Every exploit and every honest control under `cpp/` gets the outcome that its header requires."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from headers import fits, header

from davinci_kernel.gym import Candidate, EvalSettings, GymPool, Verdict
from davinci_kernel.tasks import Task

HERE = Path(__file__).parent
FILES = sorted((HERE / "cpp").glob("*.py"))
SETTINGS = EvalSettings(min_processes=2, max_processes=2, rounds=6, run_timeout=3.0)

Judge = Callable[[list[Path]], list[Verdict]]


def task_of(path: Path) -> Task:
    name = header(path, "task")
    return Task(f"adversarial/{name}", (HERE / "tasks" / name).read_text())


def cases() -> list[object]:
    slow = {path for path in FILES if "\n# slow\n" in path.read_text()}
    return [pytest.param(path, id=path.stem, marks=[pytest.mark.slow] if path in slow else []) for path in FILES]


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    """Judges files in one pool, all at once."""
    loop = asyncio.new_event_loop()
    pool = GymPool(SETTINGS, cache_verdicts=False)

    def run(paths: list[Path]) -> list[Verdict]:
        pairs = [(task_of(path), Candidate(code=path.read_text())) for path in paths]
        return loop.run_until_complete(pool.evaluate_many(pairs))

    yield run
    loop.run_until_complete(pool.close())
    loop.close()


@pytest.mark.parametrize("path", cases())
def test_candidate_gets_the_required_verdict(path: Path, judge: Judge) -> None:
    (verdict,) = judge([path])
    alternatives = header(path, "required").split("|")
    found = f"{verdict.outcome.value} {verdict.hack or ''} coverage {verdict.coverage}: {verdict.message}"
    assert any(fits(verdict, required) for required in alternatives), f"required {alternatives}, got {found}"


def test_same_function_names_at_once_do_not_meet(judge: Judge) -> None:
    """Both export `silu`; only one of them is right."""
    names = ["honest_plain", "half_precision", "honest_plain", "honest_try_import"]
    verdicts = judge([HERE / "cpp" / f"{name}.py" for name in names])
    assert [verdict.outcome.value for verdict in verdicts] == ["CORRECT", "WRONG_VALUE", "CORRECT", "CORRECT"]
