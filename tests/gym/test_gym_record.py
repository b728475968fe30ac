"""Recording and replaying verdicts."""

import asyncio

import pytest

from davinci_kernel.errors import EvaluatorError
from davinci_kernel.gym import Candidate, EvalSettings, Outcome, RecordingGym, ReplayGym, Verdict
from davinci_kernel.tasks import Task

TASK, CANDIDATE = Task("t", "reference"), Candidate(code="candidate")


class CountingGym:
    """Answers with the number of the request as speedup."""

    def __init__(self):
        self.requests = 0

    async def evaluate(self, task, candidate, settings=None, *, fresh=False):
        self.requests += 1
        return Verdict(outcome=Outcome.CORRECT, speedup=float(self.requests))

    async def evaluate_many(self, pairs, settings=None):
        return [await self.evaluate(*pair, settings) for pair in pairs]

    async def close(self):
        pass


def speedups(gym, count, settings=None):
    async def ask():
        return [(await gym.evaluate(TASK, CANDIDATE, settings)).speedup for _ in range(count)]

    return asyncio.run(ask())


def test_equal_requests_replay_in_their_order(tmp_path):
    assert speedups(RecordingGym(CountingGym(), tmp_path / "v.sqlite"), 3) == [1.0, 2.0, 3.0]
    assert speedups(ReplayGym(tmp_path / "v.sqlite"), 3) == [1.0, 2.0, 3.0]


def test_recording_again_asks_only_for_what_is_new(tmp_path):
    speedups(RecordingGym(CountingGym(), tmp_path / "v.sqlite"), 2)
    inner = CountingGym()
    assert speedups(RecordingGym(inner, tmp_path / "v.sqlite"), 3) == [1.0, 2.0, 1.0]
    assert inner.requests == 1


def test_unknown_request_is_an_evaluator_error(tmp_path):
    speedups(RecordingGym(CountingGym(), tmp_path / "v.sqlite"), 1)
    with pytest.raises(EvaluatorError, match=r"v\.sqlite"):
        speedups(ReplayGym(tmp_path / "v.sqlite"), 2)
    with pytest.raises(EvaluatorError):
        speedups(ReplayGym(tmp_path / "v.sqlite"), 1, EvalSettings(seed=7))
