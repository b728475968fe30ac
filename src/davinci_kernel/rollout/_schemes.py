"""Schemes of one task: recall, k selection inferences, and the null scheme (ALGORITHMS, items 1 and 2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from davinci_kernel.agents import SELECT_SKILLS, Selection, parse_selection, selection_messages
from davinci_kernel.config import RolloutConfig, SkillConfig
from davinci_kernel.llm import LLM, Completion, SamplingParams
from davinci_kernel.skills import LibraryView, Skill, SkillLibrary
from davinci_kernel.tasks import Task

from ._seeds import derive_seed
from ._surviving import gather_surviving
from ._types import Scheme


@dataclass(frozen=True)
class SchemePlan:
    """What one task rolls out.

    Attributes:
        schemes: selected ones, then the null scheme.
        rollouts: policy rollouts of each scheme; they add up to (k + 1)·n.
        offered: skills that were recalled.
        selections: (completion, parsed selection) of each selection inference, None for one that failed; empty without
            selection agent.
    """

    schemes: tuple[Scheme, ...]
    rollouts: tuple[int, ...]
    offered: tuple[Skill, ...] = ()
    selections: tuple[tuple[Completion, Selection] | None, ...] = ()


async def plan_schemes(
    task: Task,
    library: SkillLibrary | LibraryView | None,
    *,
    llm: LLM,
    skill: SkillConfig,
    rollout: RolloutConfig,
    seed: int,
) -> SchemePlan:
    """Recall skills and let the selection agent choose.

    An empty library (or skills switched off) leaves the null scheme alone, which then gets all (k + 1)·n rollouts, so that
    the size of the group is the same. In `bm25` mode every scheme but the null one gets the top recalled skills. A selection
    inference that raises is logged; its scheme has no skills, as one that could not be parsed, and it has no row.
    """
    null = Scheme(index=skill.k, is_null=True)
    if not skill.enable or library is None or len(library) == 0:
        return SchemePlan((null,), ((skill.k + 1) * rollout.rollout_n,))
    offered = library.recall(task.code, skill.top_bm25, skill.fallback_sample, derive_seed(seed, "recall"))
    rollouts = (rollout.rollout_n,) * (skill.k + 1)
    if skill.mode == "bm25":
        top = tuple(offered[: skill.top_k_select])
        return SchemePlan((*(Scheme(index=i, skills=top) for i in range(skill.k)), null), rollouts, tuple(offered))
    inferences = (
        select(
            task,
            offered,
            llm=llm,
            skill=skill,
            temperature=rollout.temperature,
            seed=derive_seed(seed, "selection", index),
        )
        for index in range(skill.k)
    )
    selections = await gather_surviving(inferences, f"{task.task_id}: a selection")
    by_name = {s.name: s for s in offered}
    chosen = (
        Scheme(index=i, skills=tuple(by_name[name] for name in answer[1].names) if answer else ())
        for i, answer in enumerate(selections)
    )
    return SchemePlan((*chosen, null), rollouts, tuple(offered), tuple(selections))


async def select(
    task: Task, offered: Sequence[Skill], *, llm: LLM, skill: SkillConfig, temperature: float, seed: int
) -> tuple[Completion, Selection]:
    """One selection inference over the headers of the offered skills."""
    messages = selection_messages(task, offered, skill.task_chars, skill.top_k_select)
    params = SamplingParams(max_tokens=skill.select_max_tokens, temperature=temperature, seed=seed)
    completion = await llm.chat(messages, params, [SELECT_SKILLS])
    return completion, parse_selection(completion, offered, skill.top_k_select)
