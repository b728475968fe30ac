"""Summary trigger, summary agent, and verification by execution (ALGORITHMS, items 6 to 8)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from davinci_kernel.agents import UPDATE_SKILL_LIBRARY, Summary, parse_summary, summary_messages
from davinci_kernel.config import RolloutConfig, SkillConfig
from davinci_kernel.gym import Candidate, EvalSettings, Gym, Verdict
from davinci_kernel.llm import LLM, Completion, SamplingParams
from davinci_kernel.skills import Skill
from davinci_kernel.tasks import Task

from ._episode import run_episode
from ._seeds import derive_seed
from ._surviving import gather_surviving
from ._types import Scheme, Trajectory, Turn

_PROCESSES = 4


@dataclass(frozen=True)
class Trigger:
    """An improvement worth summarising."""

    trajectory: Trajectory
    scheme: Scheme
    first: Turn
    best: Turn

    @property
    def first_speedup(self) -> float:
        return self.first.verdict.speedup or 0.0


@dataclass(frozen=True)
class Proposal:
    """One distinct proposed skill and what its verification measured.

    Attributes:
        speedup: verified speedup; None where it was not accepted.
        reason: why it was accepted or not.
        judged: False where nothing was found out about the skill: a fault of ours or of the task, or noise.
    """

    skill: Skill
    speedup: float | None
    reason: str
    judged: bool = True


@dataclass(frozen=True)
class SummaryRound:
    """All summary inferences of one trigger that were answered.

    Attributes:
        rewards: per inference: the best verified speedup among its skills, 0 where there is none; None (no row) where
            none was verified and at least one could not be judged.
        staged: the accepted skill with the highest verified speedup, if any.
    """

    trigger: Trigger
    completions: tuple[Completion, ...]
    summaries: tuple[Summary, ...]
    proposals: tuple[Proposal, ...]
    rewards: tuple[float | None, ...]
    staged: Skill | None


def find_trigger(trajectories: Sequence[Trajectory], schemes: Sequence[Scheme], config: SkillConfig) -> Trigger | None:
    """The task's best rollout, if its turn 1 was CORRECT and its best turn is enough faster than that, and fast."""
    timed = [
        (turn, t) for t in trajectories for turn in t.turns if turn.verdict.correct and turn.verdict.speedup is not None
    ]
    if not timed:
        return None
    best, trajectory = max(timed, key=lambda pair: pair[0].verdict.speedup or 0.0)
    first = trajectory.turns[0]
    if not first.verdict.correct or first.verdict.speedup is None or best.code is None or first.code is None:
        return None
    fastest = best.verdict.speedup or 0.0
    if fastest < config.trigger_min_absolute_speedup:
        return None
    if fastest < config.trigger_min_relative_speedup * first.verdict.speedup:
        return None
    scheme = next(s for s in schemes if s.index == trajectory.scheme)
    return Trigger(trajectory, scheme, first, best)


async def summarise(
    task: Task,
    trigger: Trigger,
    *,
    llm: LLM,
    gym: Gym,
    skill: SkillConfig,
    rollout: RolloutConfig,
    settings: EvalSettings,
    seed: int,
    count_tokens: Callable[[str], int],
) -> SummaryRound:
    """Ask `summary_n` times what made the best kernel faster, and verify every distinct proposal by execution."""
    messages = summary_messages(
        task,
        trigger.scheme.skills,
        trigger.first.code or "",
        trigger.first_speedup,
        trigger.best.code or "",
        trigger.best.verdict.speedup or 0.0,
        skill.max_new_skills,
    )

    async def ask(index: int) -> tuple[Completion, Summary]:
        params = SamplingParams(
            max_tokens=skill.summary_max_tokens,
            temperature=rollout.temperature,
            seed=derive_seed(seed, "summary", index),
        )
        completion = await llm.chat(messages, params, [UPDATE_SKILL_LIBRARY])
        return completion, parse_summary(completion, skill.max_new_skills, count_tokens, skill.max_content_tokens)

    asked = await gather_surviving(map(ask, range(skill.summary_n)), f"{task.task_id}: a summary")
    answers = [answer for answer in asked if answer is not None]
    distinct = {(s.name, s.content): s for _, summary in answers for s in summary.skills}
    verifications = (
        _verify(task, s, trigger, llm=llm, gym=gym, skill=skill, rollout=rollout, settings=settings, seed=seed)
        for s in distinct.values()
    )
    verified = await gather_surviving(verifications, f"{task.task_id}: a verification")
    proposals = {
        key: proposal or Proposal(distinct[key], None, "the verification failed", judged=False)
        for key, proposal in zip(distinct, verified, strict=True)
    }
    rewards = tuple(_reward([proposals[s.name, s.content] for s in summary.skills]) for _, summary in answers)
    accepted = [p for p in proposals.values() if p.speedup is not None]
    staged = max(accepted, key=lambda p: p.speedup or 0.0).skill if accepted else None
    return SummaryRound(
        trigger,
        tuple(c for c, _ in answers),
        tuple(s for _, s in answers),
        tuple(proposals.values()),
        rewards,
        staged,
    )


async def _verify(
    task: Task,
    proposed: Skill,
    trigger: Trigger,
    *,
    llm: LLM,
    gym: Gym,
    skill: SkillConfig,
    rollout: RolloutConfig,
    settings: EvalSettings,
    seed: int,
) -> Proposal:
    """Policy turn 1, greedy, with the rollout's skills and the new one; the kernel it writes is measured repeatedly.

    Every measurement must pass both thresholds, and the lower end of the last one's interval must pass the absolute one.
    At least `_PROCESSES` processes are timed, so that this interval means something.
    """
    careful = settings.model_copy(
        update={
            "min_processes": max(settings.min_processes, _PROCESSES),
            "max_processes": max(settings.max_processes, 2 * _PROCESSES),
        }
    )
    episode = await run_episode(
        task,
        [*trigger.scheme.skills, proposed],
        llm=llm,
        gym=gym,
        config=rollout,
        settings=careful,
        seed=seed,
        max_turn=1,
        temperature=0.0,
        fresh=True,
    )
    if not episode.turns:
        return Proposal(proposed, None, "the prompt with the new skill is too long")
    code, verdict = episode.turns[0].code, episode.turns[0].verdict
    least = max(skill.verify_min_absolute_speedup, skill.verify_min_relative_speedup * trigger.first_speedup)
    refusal = _refusal(verdict, least)
    for _ in range(skill.verify_repeats - 1):
        if refusal is not None or code is None:
            break
        verdict = await gym.evaluate(task, Candidate(code=code, backend=rollout.backend), careful, fresh=True)
        refusal = _refusal(verdict, least)
    if refusal is not None:
        return Proposal(proposed, None, refusal, judged=_says_something(verdict))
    low = verdict.speedup_interval[0] if verdict.speedup_interval else 0.0
    if low < skill.verify_min_absolute_speedup:
        return Proposal(proposed, None, f"not reproducible: the interval reaches down to {low:.2f}")
    provenance = {
        "task_id": task.task_id,
        "scheme": trigger.trajectory.scheme,
        "rollout": trigger.trajectory.rollout,
        "turn": trigger.best.index,
        "first_speedup": trigger.first_speedup,
        "best_speedup": trigger.best.verdict.speedup,
        "verified_speedup": verdict.speedup,
        "verified_interval": verdict.speedup_interval,
    }
    kept = proposed.model_copy(update={"verify_speedup": verdict.speedup, "provenance": provenance})
    return Proposal(kept, verdict.speedup, f"verified: speedup {verdict.speedup:.2f}")


def _refusal(verdict: Verdict, least: float) -> str | None:
    """Why one measurement does not speak for the skill; None if it does."""
    if not verdict.correct:
        return f"{verdict.outcome.value}: {verdict.message}"
    if verdict.speedup is None:
        return "too noisy to time"
    if verdict.speedup < least:
        return f"speedup {verdict.speedup:.2f} is below {least:.2f}"
    return None


def _says_something(verdict: Verdict) -> bool:
    return verdict.outcome.is_candidates_fault and not (verdict.correct and verdict.speedup is None)


def _reward(proposals: Sequence[Proposal]) -> float | None:
    """Of one inference; see `SummaryRound.rewards`."""
    verified = [p.speedup for p in proposals if p.speedup is not None]
    if not verified and not all(p.judged for p in proposals):
        return None
    return max(verified, default=0.0)
