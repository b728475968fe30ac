"""`HttpGym` against real servers, also ones that are killed; `open_gym`."""

import asyncio
import json
import signal
import sqlite3

import pytest
from serving import FAST, HANGING, KERNEL, REFERENCE, WRONG

from davinci_kernel.errors import EvaluatorError, UserError
from davinci_kernel.gym import Candidate, EvalSettings, GymPool, HttpGym, Outcome, open_gym
from davinci_kernel.tasks import Task

TASK = Task("suite/1/relu2", REFERENCE)
SETTINGS = EvalSettings(**FAST)


def recorded(database):
    """Of every task on record, in order: state and outcome."""
    rows = sqlite3.connect(database).execute("SELECT state, verdict FROM tasks ORDER BY number").fetchall()
    return [(state, verdict and json.loads(verdict)["outcome"]) for state, verdict in rows]


def test_a_server_is_asked_like_a_pool(start_server, tmp_path, monkeypatch):
    server = start_server(tmp_path / "gym.sqlite", token="secret")
    monkeypatch.setenv("KERNELGYM_SERVER_URL", server.url)
    with pytest.raises(UserError, match=r"a token is needed.*KERNELGYM_TOKEN"):
        open_gym(SETTINGS)
    monkeypatch.setenv("KERNELGYM_TOKEN", "wrong")
    with pytest.raises(UserError, match=r"the token is wrong.*KERNELGYM_TOKEN"):
        open_gym(SETTINGS)
    monkeypatch.setenv("KERNELGYM_TOKEN", "secret")
    gym = open_gym(SETTINGS)
    assert isinstance(gym, HttpGym)

    async def judge():
        async with gym:
            pairs = [(TASK, Candidate(code=code)) for code in (KERNEL, WRONG, KERNEL)]
            return await gym.evaluate_many(pairs), await gym.evaluate(*pairs[0], fresh=True)

    (right, wrong, same), fresh = asyncio.run(judge())
    assert [v.outcome for v in (right, wrong, fresh)] == [Outcome.CORRECT, Outcome.WRONG_VALUE, Outcome.CORRECT]
    assert same == right
    assert fresh.provenance["compile_seconds"] != right.provenance["compile_seconds"]
    assert right.provenance["task"] == "suite/1/relu2"
    assert right.provenance["settings"] | FAST == right.provenance["settings"]
    assert gym.evaluate_blocking(TASK, Candidate(code=KERNEL)) in (right, fresh)
    with pytest.raises(UserError, match="rounds"):
        gym.evaluate_blocking(TASK, Candidate(code=KERNEL), SETTINGS.model_copy(update={"rounds": 10**6}))


def test_without_the_variable_a_pool_judges(monkeypatch):
    monkeypatch.delenv("KERNELGYM_SERVER_URL", raising=False)
    assert isinstance(open_gym(SETTINGS), GymPool)


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("http://127.0.0.1:9", r"no answer .*davinci gym serve"),
        ("127.0.0.1:10907", "such as http://127.0.0.1:10907"),
        ("http://host:port", "such as http://127.0.0.1:10907"),
    ],
)
def test_a_missing_server_is_named_with_the_way_out(monkeypatch, url, says):
    monkeypatch.setenv("KERNELGYM_SERVER_URL", url)
    with pytest.raises(UserError, match=says):
        open_gym()


def test_patience_with_a_server_that_is_gone_ends():
    with pytest.raises(EvaluatorError, match=r"127\.0\.0\.1:9: no answer for 0\.3 s"):
        HttpGym("http://127.0.0.1:9", patience=0.3).evaluate_blocking(TASK, Candidate(code=KERNEL))


def test_a_server_killed_under_way_comes_back_and_every_task_gets_one_result(start_server, tmp_path):
    database = tmp_path / "gym.sqlite"
    server = start_server(database)
    codes = [HANGING, *(f"{KERNEL}\n# {index}\n" for index in range(8)), WRONG]

    async def judge():
        async with HttpGym(server.url, SETTINGS) as gym:
            waiting = asyncio.gather(*(gym.evaluate(TASK, Candidate(code=code)) for code in codes))
            while not database.exists() or len(recorded(database)) < len(codes):
                await asyncio.sleep(0.05)
            for _ in range(2):
                await asyncio.sleep(1.5)
                servers[-1].end(signal.SIGKILL)
                servers.append(await asyncio.to_thread(start_server, database, port=server.port))
            return await waiting

    servers = [server]
    outcomes = [verdict.outcome.value for verdict in asyncio.run(judge())]
    assert outcomes == ["TIMEOUT", *["CORRECT"] * 8, "WRONG_VALUE"]
    assert sorted(recorded(database)) == sorted(("completed", outcome) for outcome in outcomes)


def test_sigterm_finishes_what_is_under_way_and_keeps_the_rest(start_server, tmp_path):
    database = tmp_path / "gym.sqlite"
    server = start_server(database, "--compile-slots", "1")
    codes = [f"{HANGING}\n# {index}\n" for index in range(4)]

    async def judge():
        async with HttpGym(server.url, SETTINGS) as gym:
            waiting = asyncio.gather(*(gym.evaluate(TASK, Candidate(code=code)) for code in codes))
            while not database.exists() or len(recorded(database)) < len(codes):
                await asyncio.sleep(0.05)
            code, said = await asyncio.to_thread(server.end, signal.SIGTERM)
            assert code == 0
            assert "2 unfinished tasks are on record" in said
            first = recorded(database)
            again = await asyncio.to_thread(start_server, database, port=server.port)
            verdicts = await waiting
            assert (await asyncio.to_thread(again.end, signal.SIGTERM))[0] == 0
            return first, verdicts

    first, verdicts = asyncio.run(judge())
    assert sorted(first, key=str) == [("completed", "TIMEOUT")] * 2 + [("pending", None)] * 2
    assert [verdict.outcome for verdict in verdicts] == [Outcome.TIMEOUT] * 4


def test_a_database_and_a_port_belong_to_one_server(start_server, tmp_path):
    server = start_server(tmp_path / "gym.sqlite")
    with pytest.raises(AssertionError, match="another server is using it"):
        start_server(tmp_path / "gym.sqlite")
    with pytest.raises(AssertionError, match="choose another port"):
        start_server(tmp_path / "other.sqlite", port=server.port)
    (tmp_path / "text.sqlite").write_text("no database, but a text that is long enough to be read as one's header" * 9)
    with pytest.raises(AssertionError, match="file is not a database"):
        start_server(tmp_path / "text.sqlite")
