"""One task's co-evolution, with a scripted model and a gym whose verdicts are written beside the code."""

import asyncio
import json
import logging
import re
from dataclasses import dataclass, field

import pytest

from davinci_kernel.config import RolloutConfig, SkillConfig
from davinci_kernel.gym import Candidate, EvalSettings, Outcome, Verdict
from davinci_kernel.llm import Completion
from davinci_kernel.rollout import co_evolve
from davinci_kernel.skills import Skill, SkillLibrary
from davinci_kernel.tasks import Task

TASK = Task("t1", "class Model: pass\n# softmax over rows")
SETTINGS = EvalSettings.model_validate({})
SKILL = Skill(
    name="fuse",
    description="Fuse softmax.",
    tags=("a", "b", "c"),
    content="## Motivation\nless traffic\n## Key Idea\none pass\n## Example\nx",
)
OTHER = SKILL.model_copy(
    update={"name": "unroll", "content": SKILL.content.replace("one pass", "unroll softmax loops")}
)


def kernel(speedup: float | str) -> str:
    return f"```python\nclass ModelNew:\n    speedup = {speedup!r}\n```"


def call(name: str, **arguments) -> str:
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


class WrittenGym:
    """Judges by the line `speedup = ...` in the candidate: a number is the speedup, a string the outcome."""

    def __init__(self, delays: dict[str, float] | None = None):
        self.seen: list[str] = []
        self.fresh: list[str] = []
        self.delays = delays or {}

    async def evaluate(self, task, candidate: Candidate, settings=None, *, fresh=False) -> Verdict:
        value = re.search(r"speedup = (.*)", candidate.code)[1]
        (self.fresh if fresh else self.seen).append(value)
        await asyncio.sleep(self.delays.get(value, 0))
        if value.startswith("'"):
            return Verdict(outcome=Outcome(value.strip("'")))
        speedup = float(value)
        interval = (speedup * 0.99, speedup * 1.01)
        return Verdict(outcome=Outcome.CORRECT, speedup=speedup, speedup_interval=interval, coverage=1.0, compiled=True)

    async def evaluate_many(self, pairs, settings=None):
        return [await self.evaluate(task, candidate, settings) for task, candidate in pairs]

    async def close(self) -> None: ...


@dataclass
class ScriptedLLM:
    """Answers by the agent that asks, which it reads off the prompt; prompts and answers are code points."""

    policy: list[str]
    selection: str = ""
    summary: str = ""
    asked: list[str] = field(default_factory=list)
    greedy: list[str] = field(default_factory=list)
    verified: str = field(default_factory=lambda: kernel(3.0))
    turns_seen: list[int] = field(default_factory=list)

    def render(self, messages, tools=None):
        return tuple(map(ord, "\x02".join(m["content"] for m in messages)))

    def extend(self, prompt_ids, response_ids, new_messages):
        return (*prompt_ids, *response_ids, 2, *self.render(new_messages))

    async def chat(self, messages, params, tools=None):
        return await self.complete(self.render(messages, tools), params)

    async def complete(self, prompt_ids, params) -> Completion:
        prompt = "".join(map(chr, prompt_ids))
        if "select_skills" in prompt:
            self.asked.append("selection")
            text = self.selection
        elif "update_skill_library" in prompt:
            self.asked.append("summary")
            text = self.summary
        elif params.temperature == 0:
            self.greedy.append(prompt)
            text = self.verified
        else:
            turn = prompt.count("Result of attempt")
            self.asked.append("policy")
            self.turns_seen.append(turn)
            text = self.policy[turn]
        if text == "raise":
            raise RuntimeError("lost connection")
        ids = tuple(map(ord, text))
        return Completion(text, ids, (-0.5,) * len(ids), "stop", tuple(prompt_ids))

    async def close(self) -> None: ...


def run(llm, gym=None, library=None, skill=None, rollout=None):
    skills = SkillConfig.model_validate({"k": 2, "summary_n": 2} | (skill or {}))
    policy = RolloutConfig.model_validate({"rollout_n": 2, "max_turn": 2} | (rollout or {}))
    return asyncio.run(
        co_evolve(
            TASK,
            library,
            llm=llm,
            gym=gym or WrittenGym(),
            skill=skills,
            rollout=policy,
            settings=SETTINGS,
            seed=0,
            step=0,
        )
    )


def rows(result, agent):
    return [s for s in result.samples if s.agent == agent]


def test_an_empty_library_gives_the_null_scheme_all_rollouts():
    llm = ScriptedLLM([kernel(0.5), kernel(1.0)])
    result = run(llm, library=SkillLibrary())
    assert [s.is_null for s in result.plan.schemes] == [True]
    assert llm.asked == ["policy"] * 12  # (k + 1) · n rollouts of 2 turns, no selection
    assert len(rows(result, "policy")) == 12
    assert rows(result, "selection") == []


def test_rewards_rows_and_token_ids():
    result = run(ScriptedLLM([kernel(0.5), kernel(1.0)]), library=SkillLibrary())
    first, second = rows(result, "policy")[:2]
    assert (first.reward, second.reward) == (1 + 0.5 + 0.5, 1 + 1.0 + 0.5)
    assert (first.turn, second.turn) == (0, 1)
    joined = first.prompt_ids + first.response_ids
    assert second.prompt_ids[: len(joined)] == joined
    assert "speedup 0.50x" in "".join(map(chr, second.prompt_ids[len(joined) :]))
    assert first.logprobs == (-0.5,) * len(first.response_ids)


def test_selection_chooses_skills_and_shares_pools():
    llm = ScriptedLLM(
        [kernel(0.5), kernel(1.0)],
        selection=call(
            "select_skills", think="", selected_skills=[{"name": "fuse", "reason": "r"}, {"name": "no", "reason": ""}]
        ),
    )
    result = run(llm, library=SkillLibrary(skills=(SKILL, OTHER)))
    assert [[s.name for s in scheme.skills] for scheme in result.plan.schemes] == [["fuse"], ["fuse"], []]
    assert [s.is_null for s in result.plan.schemes] == [False, False, True]
    assert result.plan.rollouts == (2, 2, 2)
    chosen = rows(result, "selection")
    assert [s.reward for s in chosen] == [2.5, 2.5]  # best turn of every rollout: 1 + 1.0 + 0.5
    assert [s.extra["parsed"] for s in chosen] == [True, True]
    assert all("one pass" not in "".join(map(chr, s.prompt_ids)) for s in chosen)  # headers, never bodies
    with_skill = [s for s in rows(result, "policy") if s.scheme == 0]
    assert all("one pass" in "".join(map(chr, s.prompt_ids)) for s in with_skill)


def test_an_unparsable_selection_has_no_skills_and_is_still_trained():
    result = run(ScriptedLLM([kernel(1.0), kernel(1.0)], selection="hm"), library=SkillLibrary(skills=(SKILL,)))
    assert [len(s.skills) for s in result.plan.schemes] == [0, 0, 0]
    assert [s.extra["parsed"] for s in rows(result, "selection")] == [False, False]


def test_bm25_mode_puts_the_top_recalled_in_every_scheme():
    llm = ScriptedLLM([kernel(1.0), kernel(1.0)])
    result = run(llm, library=SkillLibrary(skills=(SKILL, OTHER)), skill={"mode": "bm25", "top_k_select": 1})
    assert [len(s.skills) for s in result.plan.schemes] == [1, 1, 0]
    assert rows(result, "selection") == []
    assert set(llm.asked) == {"policy"}
    assert len({s.group for s in result.samples}) == 1


def test_a_lost_selection_costs_its_own_row_only(caplog):
    class Flaky(ScriptedLLM):
        async def complete(self, prompt_ids, params):
            completion = await super().complete(prompt_ids, params)
            if self.asked == ["selection"]:
                raise RuntimeError("lost connection")
            return completion

    llm = Flaky(
        [kernel(0.5), kernel(1.0)],
        selection=call("select_skills", think="", selected_skills=[{"name": "fuse", "reason": "r"}]),
    )
    with caplog.at_level(logging.WARNING):
        result = run(llm, library=SkillLibrary(skills=(SKILL,)))
    assert [[s.name for s in scheme.skills] for scheme in result.plan.schemes] == [[], ["fuse"], []]
    assert [s.scheme for s in rows(result, "selection")] == [1]
    assert len(rows(result, "policy")) == 12  # the group keeps its size
    assert "t1: a selection was lost: RuntimeError: lost connection" in caplog.text


def test_a_selection_whose_rollouts_were_all_dropped_has_no_row():
    class Picky(ScriptedLLM):
        """Selects skills by the number of the inference, and writes for `unroll` what the gym cannot judge."""

        async def complete(self, prompt_ids, params):
            completion = await super().complete(prompt_ids, params)
            if self.asked[-1] == "selection":
                name = "fuse" if self.asked.count("selection") == 1 else "unroll"
                text = call("select_skills", think="", selected_skills=[{"name": name, "reason": "r"}])
            elif "unroll softmax loops" in "".join(map(chr, prompt_ids)):
                text = kernel("INFRA_ERROR")
            else:
                return completion
            return Completion(text, tuple(map(ord, text)), (-0.5,) * len(text), "stop", tuple(prompt_ids))

    result = run(Picky([kernel(0.5), kernel(1.0)]), library=SkillLibrary(skills=(SKILL, OTHER)))
    assert [[s.name for s in scheme.skills] for scheme in result.plan.schemes] == [["fuse"], ["unroll"], []]
    assert [(s.scheme, s.reward) for s in rows(result, "selection")] == [(0, 2.5)]
    assert {s.scheme for s in rows(result, "policy")} == {0, 2}


PROPOSAL = {
    "name": "one-pass",
    "description": "One pass.",
    "scope": "general",
    "tags": ["x", "y", "z"],
    "content": "## Motivation\nm\n## Key Idea\nk\n## Example\ne",
}


def proposing(**fields):
    return ScriptedLLM(
        [kernel(1.0), kernel(2.0)], summary=call("update_skill_library", think="", new_skills=[PROPOSAL]), **fields
    )


def test_a_verified_summary_is_staged_and_paid():
    llm, gym = proposing(), WrittenGym()
    result = run(llm, gym, SkillLibrary())
    assert [s.name for s in result.staged] == ["one-pass"]
    assert result.staged[0].verify_speedup == 3.0
    assert result.staged[0].provenance["best_speedup"] == 2.0
    assert [s.reward for s in rows(result, "summary")] == [3.0, 3.0]
    assert gym.fresh == ["3.0", "3.0"]  # one distinct proposal, measured twice
    assert len(llm.greedy) == 1  # written once: both measurements are of the same kernel
    assert "one-pass" in llm.greedy[0]
    assert [s.extra["parsed"] for s in rows(result, "summary")] == [True, True]


def test_the_library_grows_in_bm25_mode_too():
    llm = proposing()
    result = run(llm, library=SkillLibrary(skills=(SKILL,)), skill={"mode": "bm25"})
    assert [s.name for s in result.staged] == ["one-pass"]
    assert "one pass" in llm.greedy[0]  # the skills of the rollout, and the new one
    assert "one-pass" in llm.greedy[0]


@dataclass
class TwoSummaries(ScriptedLLM):
    """Its summary inferences propose skills of their own; greedy policy answers depend on the skill in the prompt."""

    summaries: list[str] = field(default_factory=list)
    by_skill: dict[str, str] = field(default_factory=dict)

    async def complete(self, prompt_ids, params):
        completion = await super().complete(prompt_ids, params)
        prompt = "".join(map(chr, prompt_ids))
        if "update_skill_library" in prompt:
            text = self.summaries[self.asked.count("summary") - 1]
        elif params.temperature == 0:
            text = next(answer for name, answer in self.by_skill.items() if name in prompt)
        else:
            return completion
        if text == "raise":
            raise RuntimeError("lost connection")
        return Completion(text, tuple(map(ord, text)), (-0.5,) * len(text), "stop", tuple(prompt_ids))


def proposal(name):
    return PROPOSAL | {"name": name, "content": PROPOSAL["content"].replace("k\n", f"{name}\n")}


def summary(*names):
    return call("update_skill_library", think="", new_skills=[proposal(name) for name in names])


def test_the_best_of_several_verified_skills_is_staged_and_each_inference_is_paid_for_its_own():
    llm = TwoSummaries(
        [kernel(1.0), kernel(2.0)],
        summaries=[summary("slow", "good"), summary("better"), "no call"],
        by_skill={"slow": kernel(1.1), "good": kernel(1.5), "better": kernel(1.8)},
    )
    result = run(llm, library=SkillLibrary(), skill={"summary_n": 3})
    assert [s.name for s in result.staged] == ["better"]
    assert [s.reward for s in rows(result, "summary")] == [1.5, 1.8, 0.0]
    assert [s.extra["parsed"] for s in rows(result, "summary")] == [True, True, False]
    assert [p.speedup for p in result.summary.proposals] == [None, 1.5, 1.8]


def test_lost_summaries_and_verifications_cost_their_own_rows_only(caplog):
    llm = TwoSummaries(
        [kernel(1.0), kernel(2.0)],
        summaries=["raise", summary("breaks"), summary("good")],
        by_skill={"breaks": "raise", "good": kernel(1.5)},
    )
    with caplog.at_level(logging.WARNING):
        result = run(llm, library=SkillLibrary(), skill={"summary_n": 3})
    assert [s.name for s in result.staged] == ["good"]
    assert [s.reward for s in rows(result, "summary")] == [1.5]
    assert len(rows(result, "policy")) == 12
    assert "t1: a summary was lost" in caplog.text
    assert "t1: a verification was lost" in caplog.text


def test_a_summary_that_nobody_could_judge_is_neither_paid_nor_punished():
    llm = TwoSummaries(
        [kernel(1.0), kernel(2.0)],
        summaries=[summary("unlucky"), summary("slow")],
        by_skill={"unlucky": kernel("INFRA_ERROR"), "slow": kernel(1.1)},
    )
    result = run(llm, library=SkillLibrary())
    assert result.staged == ()
    assert result.summary.rewards == (None, 0.0)
    assert [s.reward for s in rows(result, "summary")] == [0.0]


@pytest.mark.parametrize(
    ("verified", "reason"),
    [(kernel(1.19), "below 1.20"), (kernel("WRONG_VALUE"), "WRONG_VALUE"), ("no code", "COMPILE_ERROR")],
)
def test_an_unverified_summary_is_neither_staged_nor_paid(verified, reason):
    result = run(proposing(verified=verified), library=SkillLibrary())
    assert result.staged == ()
    assert [s.reward for s in rows(result, "summary")] == [0.0, 0.0]
    assert reason in result.summary.proposals[0].reason


def test_the_last_intervals_lower_end_must_pass():
    result = run(proposing(verified=kernel(1.205)), library=SkillLibrary())  # interval from 1.193
    assert result.staged == ()
    assert "not reproducible" in result.summary.proposals[0].reason


@pytest.mark.parametrize("speedups", [(1.0, 1.1), (0.5, 1.1), (1.8, 2.0), ("WRONG_VALUE", 3.0)])
def test_no_trigger_without_a_big_enough_win_over_a_correct_first_turn(speedups):
    result = run(ScriptedLLM([kernel(s) for s in speedups]), library=SkillLibrary())
    assert result.summary is None


def test_rewards_of_a_hack_do_not_trigger():
    """A speedup counts for a CORRECT turn only, whatever a verdict carries beside it."""

    class Lenient(WrittenGym):
        async def evaluate(self, task, candidate, settings=None, *, fresh=False):
            verdict = await super().evaluate(task, candidate, settings, fresh=fresh)
            return verdict.model_copy(update={"outcome": Outcome.HACK}) if verdict.speedup == 9.0 else verdict

    assert run(ScriptedLLM([kernel(1.0), kernel(9.0)]), Lenient(), SkillLibrary()).summary is None


def test_skills_switched_off_leave_the_null_scheme_and_no_other_agent():
    llm = proposing()
    result = run(llm, library=SkillLibrary(skills=(SKILL,)), skill={"enable": False})
    assert llm.asked == ["policy"] * 12
    assert [s.is_null for s in result.plan.schemes] == [True]
    assert result.summary is None


def test_samples_do_not_depend_on_the_order_of_completion():
    def samples(delays):
        answer = call("select_skills", think="", selected_skills=[{"name": "fuse", "reason": "r"}])
        llm = proposing(selection=answer)
        return run(llm, WrittenGym(delays), SkillLibrary(skills=(SKILL,))).samples

    quick, slow = samples({}), samples({"1.0": 0.05, "2.0": 0.01})
    assert quick == slow
    assert list(quick) == sorted(quick, key=lambda s: s.sort_key)
    assert {s.agent for s in quick} == {"policy", "selection", "summary"}


def test_every_request_has_a_seed_of_its_own_that_the_step_changes():
    def seeds(step):
        class Noting(ScriptedLLM):
            async def complete(self, prompt_ids, params):
                noted.append(params.seed)
                return await super().complete(prompt_ids, params)

        noted: list[int] = []
        llm = Noting([kernel(0.5), kernel(0.5)])
        options = {"k": 2, "summary_n": 2}
        asyncio.run(
            co_evolve(
                TASK,
                SkillLibrary(skills=(SKILL,)),
                llm=llm,
                gym=WrittenGym(),
                skill=SkillConfig.model_validate(options),
                rollout=RolloutConfig.model_validate({"rollout_n": 2, "max_turn": 2}),
                settings=SETTINGS,
                seed=0,
                step=step,
            )
        )
        return noted

    first = seeds(0)
    assert len(first) == 2 + 6 * 2  # selections and policy turns
    assert len(set(first)) == len(first)
    assert sorted(seeds(0)) == sorted(first)
    assert not set(seeds(1)) & set(first)


def test_infrastructure_faults_drop_the_row_and_end_the_episode():
    llm = ScriptedLLM([kernel("INFRA_ERROR"), kernel(1.0)])
    result = run(llm, library=SkillLibrary())
    assert result.samples == ()
    assert set(llm.turns_seen) == {0}


def test_an_answer_without_code_is_judged_without_the_gym():
    gym = WrittenGym()
    result = run(ScriptedLLM(["sorry", kernel(1.0)]), gym, SkillLibrary(), rollout={"failure_reward": -1.0})
    assert {s.reward for s in rows(result, "policy") if s.turn == 0} == {-1.0}
    assert set(gym.seen) == {"1.0"}


def test_a_lost_rollout_costs_its_own_rows_only():
    class Flaky(ScriptedLLM):
        async def complete(self, prompt_ids, params):
            if len(self.asked) == 3:
                self.asked.append("lost")
                raise RuntimeError("lost connection")
            return await super().complete(prompt_ids, params)

    result = run(Flaky([kernel(1.0), kernel(1.0)]), library=SkillLibrary())
    assert result.failed == 1
    assert len(result.trajectories) == 5
    assert len(rows(result, "policy")) == 10


def test_no_turn_waits_for_another_rollouts_turn():
    """Rollout 0's first verdict comes only after all others have finished both turns."""
    order: list[str] = []

    class Slow(WrittenGym):
        async def evaluate(self, task, candidate, settings=None, *, fresh=False):
            verdict = await super().evaluate(task, candidate, settings, fresh=fresh)
            order.append(candidate.code)
            return verdict

    class OneSlow(ScriptedLLM):
        async def complete(self, prompt_ids, params):
            completion = await super().complete(prompt_ids, params)
            if len(self.asked) == 1:
                return Completion(
                    kernel(0.25), completion.token_ids, completion.logprobs, "stop", completion.prompt_ids
                )
            return completion

    run(OneSlow([kernel(1.0), kernel(1.0)]), Slow({"0.25": 0.3}), SkillLibrary())
    assert [code.count("0.25") for code in order].index(1) == 10  # five rollouts' ten verdicts came first


def test_a_prompt_that_is_too_long_is_not_played():
    result = run(ScriptedLLM([kernel(1.0), kernel(1.0)]), library=SkillLibrary(), rollout={"max_prompt_tokens": 10})
    assert all(t.turns == () for t in result.trajectories)
    assert result.samples == ()
