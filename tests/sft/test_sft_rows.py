"""Every cold-start row is what the agents would be asked and what their parsers accept."""

import random
from collections import Counter

import pytest

from davinci_kernel.agents import extract_code, feedback_message, parse_selection, parse_summary, policy_answer
from davinci_kernel.gym import Outcome, Verdict, feedback
from davinci_kernel.llm import Completion
from davinci_kernel.sft import Habits, Mix, Plan, build_rows, write_kernel
from davinci_kernel.sft._rows import _trajectory
from davinci_kernel.sft._skillbank import distractor, skill_for, useful_techniques
from davinci_kernel.sft._teacher import MeasuredTrajectory, MeasuredTurn
from davinci_kernel.skills import Skill
from davinci_kernel.tasks import GeneratorSpec, generate_task

TASKS = [generate_task(0, i, "train", GeneratorSpec(shapes=((64, 64),))) for i in range(30)]
MIX = Mix(policy=40, policy_skill=40, trajectories=30, selection=40, summary=30)


def measured(speedups=(0.5, 2.0)) -> MeasuredTrajectory:
    plans = (Plan(parallel=True), Plan(parallel=True, fused=True, fast_math=True))
    verdicts = [Verdict(outcome=Outcome.CORRECT, speedup=s, compiled=True, coverage=0.9) for s in speedups]
    return MeasuredTrajectory(TASKS[0], tuple(MeasuredTurn(p, v) for p, v in zip(plans, verdicts, strict=True)))


@pytest.fixture(scope="module")
def rows():
    return build_rows(TASKS, [measured()], MIX, Habits(), seed=0, task_chars=1000)


def answer(message) -> Completion:
    calls = [{"name": c["function"]["name"], "arguments": c["function"]["arguments"]} for c in message["tool_calls"]]
    return Completion(message.get("content") or "", tool_calls=tuple(calls))


def test_counts_and_kinds(rows):
    kinds = Counter(row.kind for row in rows)
    assert len(rows) == 180
    assert kinds["selection"] == 40
    assert kinds["summary"] + kinds["summary_retrieval"] == 30
    assert min(kinds["policy"], kinds["policy_skill"], kinds["summary_retrieval"]) > 0
    assert set(kinds) == {"policy", "policy_skill", "selection", "summary", "summary_retrieval"}


def test_same_seed_same_rows(rows):
    assert build_rows(TASKS, [measured()], MIX, Habits(), seed=0, task_chars=1000) == rows
    assert build_rows(TASKS, [measured()], MIX, Habits(), seed=1, task_chars=1000) != rows


def test_policy_answers_hold_a_candidate_module(rows):
    for row in rows:
        if row.kind.startswith("policy"):
            for message in row.messages:
                if message["role"] == "assistant":
                    assert "class ModelNew" in extract_code(message["content"])


def test_skills_in_the_prompt_are_followed(rows):
    marks = {"Put an OpenMP parallel for": "#pragma omp parallel for", "flag -mprefer": '"-mprefer-vector-width=512"'}
    seen = Counter()
    for row in rows:
        for told, mark in marks.items():
            if row.kind == "policy_skill" and told in row.messages[0]["content"]:
                seen[told] += 1
                assert mark in row.messages[2]["content"]
    assert len(seen) == len(marks)


def test_selection_answers_parse_and_name_offered_skills(rows):
    chosen = Counter()
    for row in rows:
        if row.kind == "selection":
            prompt = row.messages[1]["content"]
            call = row.messages[-1]["tool_calls"][0]["function"]["arguments"]
            names = [choice["name"] for choice in call["selected_skills"]]
            assert all(f" {name} [" in prompt for name in names)
            selection = parse_selection(answer(row.messages[-1]), [Skill(name=n) for n in names], 3)
            assert selection.parsed
            assert list(selection.names) == names
            chosen[len(names)] += 1
    assert set(chosen) >= {1, 2, 3}


def test_summary_answers_parse_and_say_what_was_gained(rows):
    for row in rows:
        if row.kind.startswith("summary"):
            summary = parse_summary(answer(row.messages[-1]), 2, lambda text: len(text.split()))
            assert summary.parsed
            assert not summary.rejected
            assert len(summary.skills) == 2
            said = "\n".join(skill.content for skill in summary.skills)
            assert "-ffast-math" in said
            assert "OpenMP" not in said  # the first kernel was parallel already


def test_trajectories_carry_the_measured_feedback():
    row = _trajectory(TASKS[3], measured((0.51, 1.97)), random.Random(0))
    roles = [message["role"] for message in row.messages]
    assert roles == ["system", "user", "assistant", "user", "assistant"]
    first = measured((0.51, 1.97)).turns[0].verdict
    assert row.messages[3] == feedback_message(feedback(first), 0)  # as a rollout asks after its first turn
    assert "0.51" in row.messages[3]["content"]
    assert "1.97" not in row.messages[3]["content"]


def test_a_slip_is_shown_but_not_taught():
    good = measured().turns[1]
    wrong = Verdict(outcome=Outcome.WRONG_VALUE, message="trial 1: output[0, 0]: expected 1, got 2", compiled=True)
    trajectory = MeasuredTrajectory(TASKS[0], (MeasuredTurn(good.plan, wrong, slip=True), good))
    slipped, repaired = (
        m for m in _trajectory(TASKS[3], trajectory, random.Random(0)).messages if m["role"] == "assistant"
    )
    assert slipped["weight"] == 0
    assert extract_code(slipped["content"]) != extract_code(repaired["content"])
    assert repaired == policy_answer(write_kernel(TASKS[3], good.plan))


def test_trajectories_that_gained_nothing_give_no_summaries():
    rows = build_rows(TASKS, [measured((1.0, 1.1))], MIX, Habits(), seed=0, task_chars=1000)
    assert not any(row.kind.startswith("summary") for row in rows)


def test_distractors_are_never_useful_and_skills_pass_the_librarys_checks():
    rng = random.Random(0)
    assert all(distractor(rng).provenance["technique"] is None for _ in range(20))
    assert set(useful_techniques(TASKS[0])) <= {"parallel", "fused", "single", "fast_math", "wide"}
    for technique in ("parallel", "fused", "single", "fast_math", "wide"):
        skill = skill_for(technique, TASKS[0], rng)
        assert 3 <= len(skill.tags) <= 6
        assert skill.scope == "general" or skill.scope.startswith("task_specific/")


def test_kernels_of_one_task_differ_by_plan():
    assert len({write_kernel(TASKS[0], Plan(parallel=p, single=s)) for p in (True, False) for s in (True, False)}) == 4
