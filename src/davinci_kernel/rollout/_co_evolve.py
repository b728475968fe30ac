"""One task's co-evolution: schemes, rollouts, rewards, summaries, verification, and the rows that trainers see."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from davinci_kernel.config import RolloutConfig, SkillConfig
from davinci_kernel.gym import EvalSettings, Gym
from davinci_kernel.llm import LLM, Completion
from davinci_kernel.skills import LibraryView, Skill, SkillLibrary
from davinci_kernel.tasks import Task

from ._episode import run_episode
from ._rewards import selection_rewards
from ._schemes import SchemePlan, plan_schemes
from ._seeds import derive_seed
from ._summary import SummaryRound, find_trigger, summarise
from ._surviving import gather_surviving
from ._types import Sample, Trajectory


@dataclass(frozen=True)
class TaskRollout:
    """What one task gave in one step.

    Attributes:
        samples: training rows in the order of `Sample.sort_key`.
        trajectories: every rollout that was played, in the order of scheme and rollout.
        summary: the summary round, if there was a trigger.
        failed: rollouts lost to exceptions.
    """

    task: Task
    plan: SchemePlan
    samples: tuple[Sample, ...]
    trajectories: tuple[Trajectory, ...]
    summary: SummaryRound | None = None
    failed: int = 0
    staged: tuple[Skill, ...] = field(default=())

    def best_rewards(self, scheme: int) -> list[float]:
        """Per rollout of a scheme, its best turn's reward; rollouts without one are left out."""
        best = (t.best_turn() for t in self.trajectories if t.scheme == scheme)
        return [turn.reward for turn in best if turn is not None and turn.reward is not None]


async def co_evolve(
    task: Task,
    library: SkillLibrary | LibraryView | None,
    *,
    llm: LLM,
    gym: Gym,
    skill: SkillConfig,
    rollout: RolloutConfig,
    settings: EvalSettings,
    seed: int,
    step: int,
    count_tokens: Callable[[str], int] = lambda text: len(text.split()),
) -> TaskRollout:
    """Roll out one task. Everything runs concurrently: no turn waits for another rollout's turn.

    A rollout, selection, summary or verification that raises is logged and costs its own rows only.
    """
    seed = derive_seed(seed, step, task.task_id)
    plan = await plan_schemes(task, library, llm=llm, skill=skill, rollout=rollout, seed=seed)
    episodes = (
        run_episode(
            task,
            scheme.skills,
            llm=llm,
            gym=gym,
            config=rollout,
            settings=settings,
            seed=derive_seed(seed, scheme.index, index),
            scheme=scheme.index,
            rollout=index,
        )
        for scheme, count in zip(plan.schemes, plan.rollouts, strict=True)
        for index in range(count)
    )
    played = await gather_surviving(episodes, f"{task.task_id}: a rollout")
    trajectories = [trajectory for trajectory in played if trajectory is not None]
    trigger = find_trigger(trajectories, plan.schemes, skill) if skill.enable else None
    summary = None
    if trigger is not None:
        summary = await summarise(
            task,
            trigger,
            llm=llm,
            gym=gym,
            skill=skill,
            rollout=rollout,
            settings=settings,
            seed=derive_seed(seed, "summary"),
            count_tokens=count_tokens,
        )
    samples = [
        *_policy_rows(task, trajectories),
        *_selection_rows(task, plan, trajectories, skill),
        *_summary_rows(task, summary),
    ]
    return TaskRollout(
        task=task,
        plan=plan,
        samples=tuple(sorted(samples, key=lambda sample: sample.sort_key)),
        trajectories=tuple(trajectories),
        summary=summary,
        failed=len(played) - len(trajectories),
        staged=(summary.staged,) if summary is not None and summary.staged is not None else (),
    )


def _policy_rows(task: Task, trajectories: Sequence[Trajectory]) -> list[Sample]:
    return [
        Sample(
            agent="policy",
            task_id=task.task_id,
            group=task.task_id,
            scheme=trajectory.scheme,
            rollout=trajectory.rollout,
            turn=turn.index,
            prompt_ids=turn.prompt_ids,
            response_ids=turn.response_ids,
            logprobs=turn.logprobs,
            reward=turn.reward,
            coverage=turn.verdict.coverage,
            speedup=turn.verdict.speedup,
            outcome=turn.verdict.outcome.value,
            finish_reason=turn.finish_reason,
        )
        for trajectory in trajectories
        for turn in trajectory.turns
        if turn.reward is not None
    ]


def _selection_rows(
    task: Task, plan: SchemePlan, trajectories: Sequence[Trajectory], skill: SkillConfig
) -> list[Sample]:
    if not plan.selections:
        return []
    rewards = selection_rewards(
        [scheme.pool_key for scheme in plan.schemes],
        [
            [
                [turn.reward for turn in t.turns if turn.reward is not None]
                for t in trajectories
                if t.scheme == scheme.index
            ]
            for scheme in plan.schemes
        ],
        reduce=skill.selection_reduce,
        aggregate=skill.selection_aggregate,
    )
    return [
        _single_turn_row("selection", task, index, answer[0], reward, {"parsed": answer[1].parsed})
        for index, (answer, reward) in enumerate(zip(plan.selections, rewards, strict=False))
        if answer is not None and reward is not None
    ]


def _summary_rows(task: Task, summary: SummaryRound | None) -> list[Sample]:
    if summary is None:
        return []
    answers = zip(summary.completions, summary.summaries, summary.rewards, strict=True)
    return [
        _single_turn_row("summary", task, index, completion, reward, {"parsed": parsed.parsed})
        for index, (completion, parsed, reward) in enumerate(answers)
        if reward is not None
    ]


def _single_turn_row(
    agent: str, task: Task, index: int, completion: Completion, reward: float, extra: dict[str, bool]
) -> Sample:
    """A row of the selection agent (index = scheme) or the summary agent (index = rollout)."""
    return Sample.model_validate(
        {
            "agent": agent,
            "task_id": task.task_id,
            "group": task.task_id,
            "scheme": index if agent == "selection" else 0,
            "rollout": index if agent == "summary" else 0,
            "prompt_ids": completion.prompt_ids,
            "response_ids": completion.token_ids,
            "logprobs": completion.logprobs,
            "reward": reward,
            "finish_reason": completion.finish_reason,
            "extra": extra,
        }
    )
