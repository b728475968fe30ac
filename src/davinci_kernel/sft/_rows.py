"""Cold-start rows from the procedural teacher: the five kinds of the method (ALGORITHMS, "SFT cold start").

`policy`            multi-turn trajectories with the gym's feedback, and single kernels
`policy_skill`      the same with skills in the prompt: the kernel uses every technique that a skill describes
`selection`         `select_skills` calls over a list of useful skills and distractors
`summary`           `update_skill_library` calls for trajectories that became faster
`summary_retrieval` the same where the policy had skills: only what they did not say is new

Measured verdicts are reused. Summaries reuse them for tasks that differ from the measured one in their constants only: a
constant's value does not change what a kernel costs. Trajectories also lend their feedback to other chains of the same cost
class (`_cost_class`), with kernels of the same plans: the model must see many chains to learn to copy them over several turns.
Such a row's figures are the measured ones times random factors (`redrawn`): a reader of a few dozen exact figures learns them
by heart, and is lost at the first new one.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass

from davinci_kernel.agents import (
    SELECT_SKILLS,
    UPDATE_SKILL_LIBRARY,
    feedback_message,
    policy_answer,
    policy_messages,
    selection_answer,
    selection_messages,
    summary_answer,
    summary_messages,
)
from davinci_kernel.gym import Backend, Verdict, feedback
from davinci_kernel.llm import Row
from davinci_kernel.skills import Skill
from davinci_kernel.tasks import Task, with_constants

from ._kernels import TRANSCENDENTAL, write_kernel
from ._plan import TECHNIQUES, Habits, Plan
from ._skillbank import distractor, skill_for, task_kind, useful_techniques
from ._teacher import MeasuredTrajectory

BACKEND: Backend = "cpp"
_NUMBER = re.compile(r"-?\d+(?:\.\d+(?:e[-+]\d+)?|e[-+]\d+)")


@dataclass(frozen=True)
class Mix:
    """Rows per kind. `policy` and `policy_skill` count single kernels; `trajectories` counts multi-turn rows."""

    policy: int = 6000
    policy_skill: int = 5000
    trajectories: int = 4000
    selection: int = 2500
    summary: int = 2500


def build_rows(
    tasks: Sequence[Task], measured: Sequence[MeasuredTrajectory], mix: Mix, habits: Habits, seed: int, task_chars: int
) -> list[Row]:
    """All rows, shuffled. `tasks` feed single kernels and selections; `measured` feed trajectories and summaries."""
    rng = random.Random(f"rows/{seed}")
    improved = [t for t in measured if _worth_a_summary(t)]
    rows = [_single(rng.choice(tasks), [], habits, rng) for _ in range(mix.policy)]
    rows += [_single(task, _skills(task, rng), habits, rng) for task in rng.choices(tasks, k=mix.policy_skill)]
    rows += _trajectories(tasks, measured, mix.trajectories, rng)
    rows += [_selection(rng.choice(tasks), rng, task_chars) for _ in range(mix.selection)]
    rows += [_summary(rng.choice(improved), rng) for _ in range(mix.summary if improved else 0)]
    rng.shuffle(rows)
    return rows


def _single(task: Task, skills: list[Skill], habits: Habits, rng: random.Random) -> Row:
    plan = _with_skills(habits.draw(rng), skills)
    kind = "policy_skill" if skills else "policy"
    return Row([*policy_messages(task, skills, BACKEND), policy_answer(write_kernel(task, plan))], kind=kind)


def _skills(task: Task, rng: random.Random) -> list[Skill]:
    """One to three skills of different techniques; one prompt in five holds a distractor too, or only one."""
    techniques = rng.sample(TECHNIQUES, rng.choice((1, 1, 2, 2, 3)))
    skills = [skill_for(t, task, rng) for t in techniques]
    if rng.random() < 0.2:
        skills = [*skills[: rng.randint(0, 2)], distractor(rng)]
    rng.shuffle(skills)
    return skills


def _with_skills(plan: Plan, skills: Sequence[Skill]) -> Plan:
    for skill in skills:
        if technique := skill.provenance.get("technique"):
            plan = plan.with_(technique)
    return plan


def _trajectories(
    tasks: Sequence[Task], measured: Sequence[MeasuredTrajectory], count: int, rng: random.Random
) -> list[Row]:
    """Conversations over many tasks, each with the feedback of a measured trajectory of its cost class."""
    by_class: dict[tuple[str, bool, int], list[MeasuredTrajectory]] = {}
    for trajectory in measured:
        by_class.setdefault(_cost_class(trajectory.task), []).append(trajectory)
    known = [task for task in tasks if _cost_class(task) in by_class]
    chosen = rng.choices(known, k=count) if known else []
    return [_trajectory(task, rng.choice(by_class[_cost_class(task)]), rng) for task in chosen]


def _cost_class(task: Task) -> tuple[str, bool, int]:
    """Chains of one class cost about the same: last operator's kind, any library function, number of operators."""
    ops = [step["op"] for step in task.metadata["steps"]]
    return task_kind(task), any(op in TRANSCENDENTAL for op in ops), len(ops)


def _trajectory(task: Task, measured: MeasuredTrajectory, rng: random.Random) -> Row:
    """A conversation; where the first plan uses techniques, half of the time a skill had told them."""
    first = measured.turns[0].plan
    told = [t for t in TECHNIQUES if getattr(first, t) and rng.random() < 0.5] if rng.random() < 0.5 else []
    skills = [skill_for(t, task, rng) for t in told[:3]]
    messages = policy_messages(task, skills, BACKEND)
    for index, turn in enumerate(measured.turns):
        if index:
            said = feedback(redrawn(measured.turns[index - 1].verdict, rng))
            messages = [*messages, feedback_message(said, index - 1)]
        answer = policy_answer(turn.code(task))
        messages = [*messages, answer | {"weight": 0} if turn.slip else answer]  # a slip is there to be repaired
    return Row(messages, kind="policy_skill" if skills else "policy")


def redrawn(verdict: Verdict, rng: random.Random) -> Verdict:
    """The verdict with other figures: times change by some 10 %, the speedup by 30 %, wrong values by any factor."""
    changed: dict[str, object] = {"message": _NUMBER.sub(lambda m: _another(m, rng), verdict.message)}
    if verdict.speedup and verdict.reference_ms:
        speedup = verdict.speedup * math.exp(rng.gauss(0.0, 0.3))
        reference_ms = verdict.reference_ms * math.exp(rng.gauss(0.0, 0.1))
        changed |= {"speedup": speedup, "reference_ms": reference_ms, "kernel_ms": reference_ms / speedup}
    return verdict.model_copy(update=changed)


def _another(match: re.Match[str], rng: random.Random) -> str:
    """A figure with a fraction, in the same notation and number of digits; whole numbers stay."""
    digits = len(match[0].lstrip("-0.").replace(".", "").split("e")[0])
    return f"{float(match[0]) * math.exp(rng.gauss(0.0, 1.0)):.{max(digits, 1)}g}"


def _selection(task: Task, rng: random.Random, task_chars: int) -> Row:
    """A list of up to ten skills; the call names up to three useful ones, the most useful first."""
    offered = [skill_for(t, task, rng) for t in TECHNIQUES if rng.random() < 0.7]
    offered += [distractor(rng) for _ in range(rng.randint(0, 4))]
    offered = list({skill.name: skill for skill in offered}.values()) or [distractor(rng)]
    rng.shuffle(offered)
    by_technique = {skill.provenance.get("technique"): skill for skill in offered}
    wanted = [t for t in useful_techniques(task) if t in by_technique]
    if len(wanted) > 1 and rng.random() < 0.3:  # an imperfect adviser, whom RL can improve on
        wanted = rng.sample(wanted, len(wanted) - 1)
    chosen = [(by_technique[t].name, by_technique[t].description) for t in wanted[:3]]
    think = "These skills fit the task." if chosen else "No skill fits the task."
    messages = [*selection_messages(task, offered, task_chars), selection_answer(think, chosen)]
    return Row(messages, tools=[SELECT_SKILLS], kind="selection")


def _worth_a_summary(measured: MeasuredTrajectory, least: float = 1.2) -> bool:
    first, best = measured.turns[0], measured.best()
    if first.slip:
        return False
    ratio = (best.verdict.speedup or 0.0) / max(first.verdict.speedup or 0.0, 1e-9)
    return ratio >= least and bool(best.plan.gained_over(first.plan))


def _summary(measured: MeasuredTrajectory, rng: random.Random) -> Row:
    """What made the best turn faster than the first, as at most two skills that the policy had not been given."""
    task = with_constants(measured.task, rng.randrange(2**31))
    first, best = measured.turns[0], measured.best()
    known = [t for t in TECHNIQUES if getattr(first.plan, t)]
    had = [skill_for(t, task, rng) for t in known if rng.random() < 0.3] if rng.random() < 0.5 else []
    gained = best.plan.gained_over(first.plan)
    new = [skill_for(t, task, rng) for t in rng.sample(gained, min(2, len(gained)))]
    messages = summary_messages(
        task,
        had,
        write_kernel(task, first.plan),
        first.verdict.speedup or 0.0,
        write_kernel(task, best.plan),
        best.verdict.speedup or 0.0,
    )
    messages = [*messages, summary_answer("The best kernel differs from the first in this.", new)]
    return Row(messages, tools=[UPDATE_SKILL_LIBRARY], kind="summary_retrieval" if had else "summary")
