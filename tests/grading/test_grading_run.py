"""A grading run over scripted answers: what is written, how it resumes, what it refuses."""

import asyncio
import json
from dataclasses import replace

import pytest

from davinci_kernel.agents import selection_answer
from davinci_kernel.config import RolloutConfig, SkillConfig
from davinci_kernel.errors import UserError
from davinci_kernel.grading import GradeRow, Price, Scaling, episode_seed, grade, kept_turns, read_summary
from davinci_kernel.gym import EvalSettings, Outcome, Verdict
from davinci_kernel.llm import Completion
from davinci_kernel.rollout import Turn
from davinci_kernel.skills import Skill, SkillLibrary
from davinci_kernel.tasks import Task

TASKS = [
    Task(task_id=f"t/{name}", name=name, level=1, code=f"# {name}\nclass Model: pass\n") for name in ("softmax", "gelu")
]
FENCED = "```python\nclass ModelNew: pass  # {}\n```"


class ScriptedLLM:
    """Text-only engine: answers the selection agent with `selected`, the policy with a module that names the seed."""

    def __init__(self, selected=()):
        self.selected, self.prompts = selected, []

    def render(self, messages, tools=None):
        raise NotImplementedError

    async def complete(self, prompt_ids, params):
        raise NotImplementedError

    async def chat(self, messages, params, tools=None):
        self.prompts.append((messages, params, tools))
        if tools:
            call = selection_answer("", [(name, "fits") for name in self.selected])["tool_calls"][0]["function"]
            return Completion(text="", tool_calls=({"name": call["name"], "arguments": call["arguments"]},))
        return Completion(text=FENCED.format(params.seed))

    async def close(self):
        pass


class RecordedGym:
    """Speedups by task; each may be an outcome, or an exception to raise."""

    def __init__(self, results):
        self.results, self.judged = results, []

    async def evaluate(self, task, candidate, settings=None, *, fresh=False):
        self.judged.append((task.task_id, candidate.code))
        result = self.results[task.name]
        await asyncio.sleep(0)
        if isinstance(result, Exception):
            raise result
        if isinstance(result, Outcome):
            return Verdict(outcome=result)
        return Verdict(outcome=Outcome.CORRECT, compiled=True, speedup=result, speedup_interval=(result, result))

    async def evaluate_many(self, pairs, settings=None):
        return [await self.evaluate(task, candidate, settings) for task, candidate in pairs]

    async def close(self):
        pass


def run(out_dir, gym, llm=None, samples=2, turns=1, **changes):
    rollout = RolloutConfig.model_validate({"max_turn": turns, "temperature": changes.pop("temperature", 1.0)})
    arguments = {"tasks": TASKS, "rollout": rollout, "settings": EvalSettings(), "seed": 0, "model": "m"} | changes
    return asyncio.run(
        grade(arguments.pop("tasks"), llm=llm or ScriptedLLM(), gym=gym, samples=samples, out_dir=out_dir, **arguments)
    )


def rows_of(out_dir):
    return [GradeRow.model_validate_json(line) for line in (out_dir / "results.jsonl").read_text().splitlines()]


def test_writes_a_row_per_task_and_sample_and_the_summary(tmp_path):
    summary = run(tmp_path, RecordedGym({"softmax": 2.0, "gelu": 0.5}), turns=2)
    rows = rows_of(tmp_path)
    assert sorted((r.task_id, r.sample) for r in rows) == [
        ("t/gelu", 0),
        ("t/gelu", 1),
        ("t/softmax", 0),
        ("t/softmax", 1),
    ]
    assert all(len(r.turns) == 2 for r in rows)
    assert summary.last["fast_1"].value == 0.5
    assert summary.last["geomean_speedup"].value == pytest.approx(1.0)
    assert summary.finished
    assert read_summary(tmp_path / "summary.json") == summary


def test_every_episode_has_its_own_seed_whatever_the_order(tmp_path):
    gyms = [RecordedGym({"softmax": 2.0, "gelu": 0.5}) for _ in range(2)]
    run(tmp_path / "a", gyms[0])
    run(tmp_path / "b", gyms[1], tasks=TASKS[::-1])
    assert sorted(gyms[0].judged) == sorted(gyms[1].judged)
    seeds = {episode_seed(0, task.task_id, sample) for task in TASKS for sample in range(50)}
    assert len(seeds) == 100
    assert all(0 <= seed < 2**31 for seed in seeds)


def test_resumes_after_a_failure_without_repeating_finished_episodes(tmp_path):
    with pytest.raises(UserError, match="server is gone"):
        run(tmp_path, RecordedGym({"softmax": 2.0, "gelu": UserError("server is gone")}), concurrency=1)
    finished = [r.task_id for r in rows_of(tmp_path)]
    assert set(finished) == {"t/softmax"}
    assert not (tmp_path / "summary.json").exists()
    gym = RecordedGym({"softmax": 9.0, "gelu": 3.0})
    summary = run(tmp_path, gym)
    played_again = [task for task, _ in gym.judged]
    assert len(finished) + played_again.count("t/softmax") == 2
    assert played_again.count("t/gelu") == 2
    assert summary.n.rows == 4


def test_torn_last_lines_are_made_good(tmp_path):
    run(tmp_path, RecordedGym({"softmax": 2.0, "gelu": 0.5}))
    for name, played_again in (("results.jsonl", 0), ("turns.jsonl", 0)):
        path = tmp_path / name
        path.write_bytes(path.read_bytes()[:-20])
        gym = RecordedGym({"softmax": 2.0, "gelu": 0.5})
        assert run(tmp_path, gym).n.rows == 4
        assert len(gym.judged) == played_again
        assert len(rows_of(tmp_path)) == 4


class FailingGym(RecordedGym):
    """Raises at its n-th request."""

    def __init__(self, results, at):
        super().__init__(results)
        self.at = at

    async def evaluate(self, task, candidate, settings=None, *, fresh=False):
        if len(self.judged) + 1 == self.at:
            raise UserError("server is gone")
        return await super().evaluate(task, candidate, settings, fresh=fresh)


def test_an_interrupted_episode_continues_at_its_next_turn(tmp_path):
    """Three turns; the first run dies at the third: the second run plays that turn alone, as if never interrupted."""
    one = {"tasks": TASKS[:1], "samples": 1, "turns": 3}
    with pytest.raises(UserError, match="server is gone"):
        run(tmp_path / "cut", FailingGym({"softmax": 2.0}, at=3), **one)
    llm, gym = ScriptedLLM(), RecordedGym({"softmax": 2.0})
    run(tmp_path / "cut", gym, llm, **one)
    whole = ScriptedLLM()
    run(tmp_path / "whole", RecordedGym({"softmax": 2.0}), whole, **one)
    assert len(gym.judged) == 1
    assert llm.prompts == whole.prompts[2:]
    (cut,), (uncut,) = rows_of(tmp_path / "cut"), rows_of(tmp_path / "whole")
    assert [t.code for t in cut.turns] == [t.code for t in uncut.turns]


def test_scaling_iterations_start_from_the_kept_turns(tmp_path):
    """2 turns x 2 iterations, one turn kept: turn 3 sees system, user, and the kept answer with its feedback."""
    llm = ScriptedLLM()
    scaling = Scaling(iterations=2, keep=1)
    run(tmp_path, RecordedGym({"softmax": 2.0}), llm, tasks=TASKS[:1], samples=1, turns=2, scaling=scaling)
    assert [len(messages) for messages, _, _ in llm.prompts] == [2, 4, 4, 6]
    assert [t.turn for t in rows_of(tmp_path)[0].turns] == [0, 1, 2, 3]


def played(index, reward):
    return Turn(index=index, verdict=Verdict(outcome=Outcome.WRONG_VALUE), reward=reward)


def test_kept_turns_best_and_last():
    turns = [played(0, 1.0), played(1, 3.0), played(2, None), played(3, 2.0), played(4, 1.0)]
    assert [t.index for t in kept_turns(turns, Scaling(keep=3))] == [0, 1, 3]
    assert [t.index for t in kept_turns(turns, Scaling(keep=2, keep_by="last"))] == [3, 4]
    assert kept_turns(turns, Scaling(keep=0, keep_by="last")) == []


def test_tokens_and_dollars_add_up(tmp_path):
    class Counting(ScriptedLLM):
        async def chat(self, messages, params, tools=None):
            answer = await super().chat(messages, params, tools)
            return replace(answer, usage={"prompt_tokens": 100, "completion_tokens": 10})

    price = Price(prompt=2.0, completion=30.0)
    spent = run(tmp_path, RecordedGym({"softmax": 2.0, "gelu": 0.5}), Counting(), turns=2, price=price).spent
    assert (spent.prompt_tokens, spent.completion_tokens) == (800, 80)
    assert spent.dollars == pytest.approx(8 * (100 * 2 + 10 * 30) / 1e6)


def test_episodes_lost_to_infrastructure_are_played_again(tmp_path):
    first = run(tmp_path, RecordedGym({"softmax": 2.0, "gelu": Outcome.INFRA_ERROR}))
    assert (first.n.infra_errors, first.last["fast_1"].value) == (2, 1.0)
    gym = RecordedGym({"softmax": 2.0, "gelu": 0.5})
    second = run(tmp_path, gym)
    assert {task for task, _ in gym.judged} == {"t/gelu"}
    assert (second.n.infra_errors, second.n.rows, second.last["fast_1"].value) == (0, 4, 0.5)


def test_more_samples_extend_a_run(tmp_path):
    run(tmp_path, RecordedGym({"softmax": 2.0, "gelu": 0.5}), samples=1)
    gym = RecordedGym({"softmax": 2.0, "gelu": 0.5})
    assert run(tmp_path, gym, samples=3).n.rows == 6
    assert len(gym.judged) == 4


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"seed": 1}, "seed"),
        ({"model": "other"}, "model"),
        ({"temperature": 0.5}, "rollout"),
        ({"settings": EvalSettings(num_correct_trials=5)}, "settings"),
        ({"tasks": TASKS[:1]}, "tasks"),
        ({"library": SkillLibrary(skills=[Skill(name="x")])}, "library"),
    ],
)
def test_refuses_to_mix_runs(tmp_path, change, field):
    run(tmp_path, RecordedGym({"softmax": 2.0, "gelu": 0.5}))
    with pytest.raises(UserError, match=field):
        run(tmp_path, RecordedGym({"softmax": 2.0, "gelu": 0.5}), **change)


@pytest.mark.parametrize(("tasks", "message"), [([], "no tasks"), ([TASKS[0], TASKS[0]], "t/softmax: occurs 2 times")])
def test_refuses_unusable_tasks(tmp_path, tasks, message):
    with pytest.raises(UserError, match=message):
        run(tmp_path, RecordedGym({}), tasks=tasks)


def test_names_a_damaged_row(tmp_path):
    run(tmp_path, RecordedGym({"softmax": 2.0, "gelu": 0.5}))
    path = tmp_path / "results.jsonl"
    path.write_text("{}\n" + path.read_text())
    with pytest.raises(UserError, match=r"results\.jsonl:1"):
        run(tmp_path, RecordedGym({}))


def test_a_file_that_is_no_summary(tmp_path):
    path = tmp_path / "summary.json"
    path.write_text(json.dumps({"fast_1": 3}))
    with pytest.raises(UserError, match="not a grading summary"):
        read_summary(path)


def test_progress_counts_episodes_with_running_figures(tmp_path):
    seen = []
    gym = RecordedGym({"softmax": 2.0, "gelu": 0.5})
    run(tmp_path, gym, progress=lambda done, total, figure: seen.append((done, total, figure)))
    assert [s[:2] for s in seen] == [(0, 4), (1, 4), (2, 4), (3, 4), (4, 4)]
    assert seen[-1][2] == "correct 1.00  fast_1 0.50"


LIBRARY = SkillLibrary(
    skills=[
        Skill(name="softmax-online", description="softmax in one pass", content="SOFTMAX BODY"),
        Skill(name="gelu-poly", description="gelu by polynomial", content="GELU BODY"),
    ]
)


def policy_prompts(llm):
    return ["".join(m["content"] for m in messages) for messages, _, tools in llm.prompts if not tools]


def test_the_selection_agent_chooses_skills(tmp_path):
    llm = ScriptedLLM(selected=["softmax-online"])
    run(tmp_path, RecordedGym({"softmax": 2.0}), llm, tasks=TASKS[:1], library=LIBRARY, samples=1)
    assert [bool(tools) for _, _, tools in llm.prompts] == [True, False]
    (prompt,) = policy_prompts(llm)
    assert "SOFTMAX BODY" in prompt
    assert "GELU BODY" not in prompt
    assert rows_of(tmp_path)[0].skills == ("softmax-online",)


def test_bm25_mode_asks_no_agent(tmp_path):
    llm = ScriptedLLM()
    skill = SkillConfig.model_validate({"mode": "bm25", "top_k_select": 1})
    run(tmp_path, RecordedGym({"softmax": 2.0, "gelu": 2.0}), llm, library=LIBRARY, skill=skill, samples=1)
    assert not any(tools for _, _, tools in llm.prompts)
    assert {r.task_id: r.skills for r in rows_of(tmp_path)} == {
        "t/softmax": ("softmax-online",),
        "t/gelu": ("gelu-poly",),
    }
