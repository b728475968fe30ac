"""A grading run: every task, several samples, concurrent; interrupted runs continue where they stopped."""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from davinci_kernel.agents import SELECT_SKILLS, parse_selection, selection_messages
from davinci_kernel.config import RolloutConfig, SkillConfig
from davinci_kernel.errors import UserError
from davinci_kernel.gym import EvalSettings, Gym
from davinci_kernel.llm import LLM, SamplingParams
from davinci_kernel.rollout import run_episode
from davinci_kernel.skills import LibraryView, Skill, SkillLibrary
from davinci_kernel.tasks import Task, known_defects

from ._metrics import is_fast, summarise
from ._record import Pair, RowLog, claim, write_summary
from ._types import GradedTurn, GradeRow, GradeSummary

Progress = Callable[[int, int, str], None]
"""Called with (finished episodes, all episodes, running figures as text)."""


async def grade(
    tasks: Sequence[Task],
    *,
    llm: LLM,
    gym: Gym,
    rollout: RolloutConfig,
    settings: EvalSettings,
    samples: int,
    seed: int,
    out_dir: Path,
    model: str = "",
    library: SkillLibrary | None = None,
    skill: SkillConfig | None = None,
    concurrency: int = 64,
    progress: Progress | None = None,
) -> GradeSummary:
    """Play `samples` episodes per task, judge every turn, and write the run to `out_dir`.

    Finished (task, sample) pairs are not played again, except those lost to infrastructure. Every pair has its own
    seed, so neither order nor interruption changes what it samples.

    Args:
        gym: should not answer from a cache of verdicts: two samples of the same code are two measurements.
        model: name or path of the model, for the record.
        library: skills for the policy's prompt; chosen per (task, sample) as `skill.mode` says. None: no skills.
        concurrency: episodes in flight.

    Raises:
        UserError: no tasks, two tasks of one id, or `out_dir` holds a run of other settings.
    """
    _check(tasks, samples)
    skill = skill or SkillConfig.model_validate({})
    view = library.view() if library is not None else None
    claim(out_dir, _caliber(tasks, model, rollout, settings, seed, view, skill))
    log = RowLog(out_dir / "results.jsonl")
    wanted: dict[Pair, Task] = {(task.task_id, sample): task for sample in range(samples) for task in tasks}
    open_pairs = [pair for pair in wanted if pair not in log.rows or log.rows[pair].fault]
    slots = asyncio.Semaphore(concurrency)

    def report() -> None:
        if progress is not None:
            rows = [row for pair, row in log.rows.items() if pair in wanted]
            progress(len(rows), len(wanted), _running(rows))

    async def play(pair: Pair) -> None:
        task, sample = wanted[pair], pair[1]
        async with slots:
            own_seed = episode_seed(seed, task.task_id, sample)
            skills = await _choose(view, task, llm, skill, rollout, own_seed) if view is not None else []
            episode = await run_episode(
                task, skills, llm=llm, gym=gym, config=rollout, settings=settings, seed=own_seed, rollout=sample
            )
        turns = tuple(GradedTurn.of(turn.index, turn.verdict, turn.code) for turn in episode.turns)
        names = tuple(s.name for s in skills)
        log.append(
            GradeRow(
                task_id=task.task_id,
                name=task.name,
                level=task.level,
                sample=sample,
                defective=bool(known_defects(task)),
                skills=names,
                turns=turns,
            )
        )
        report()

    report()
    episodes = [asyncio.ensure_future(play(pair)) for pair in open_pairs]
    try:
        await asyncio.gather(*episodes)
    finally:
        for episode in episodes:
            episode.cancel()
        await asyncio.gather(*episodes, return_exceptions=True)
        log.close()
    finished = datetime.now(timezone.utc).isoformat(timespec="seconds")
    summary = summarise([log.rows[pair] for pair in wanted], seed, finished)
    write_summary(out_dir, summary)
    return summary


def episode_seed(seed: int, task_id: str, sample: int) -> int:
    """31-bit seed of one (task, sample): independent of the other tasks and of their order."""
    digest = hashlib.sha256(f"{seed}\0{task_id}\0{sample}".encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1


async def _choose(
    view: LibraryView, task: Task, llm: LLM, skill: SkillConfig, rollout: RolloutConfig, seed: int
) -> list[Skill]:
    if skill.mode == "bm25":
        return view.recall(task.code, skill.top_k_select, 0)
    offered = view.recall(task.code, skill.top_bm25, skill.fallback_sample, seed)
    if not offered:
        return []
    messages = selection_messages(task, offered, skill.task_chars, skill.top_k_select)
    params = SamplingParams(skill.select_max_tokens, rollout.temperature, rollout.top_p, seed)
    selection = parse_selection(await llm.chat(messages, params, [SELECT_SKILLS]), offered, skill.top_k_select)
    by_name = {s.name: s for s in offered}
    return [by_name[name] for name in selection.names]


def _running(rows: Sequence[GradeRow]) -> str:
    graded = [row.last() for row in rows if row.fault is None]
    if not graded:
        return ""
    fast = sum(is_fast(turn, 1.0) for turn in graded) / len(graded)
    correct = sum(turn is not None and turn.correct for turn in graded) / len(graded)
    return f"correct {correct:.2f}  fast_1 {fast:.2f}"


def _check(tasks: Sequence[Task], samples: int) -> None:
    if not tasks:
        raise UserError("nothing to grade: the task source gave no tasks; check --tasks, --split and --limit")
    if samples < 1:
        raise UserError(f"--samples {samples}: expected at least 1")
    name, times = Counter(task.task_id for task in tasks).most_common(1)[0]
    if times > 1:
        raise UserError(f"task {name}: occurs {times} times in the task source; ids must be unique")


def _caliber(
    tasks: Sequence[Task],
    model: str,
    rollout: RolloutConfig,
    settings: EvalSettings,
    seed: int,
    view: LibraryView | None,
    skill: SkillConfig,
) -> dict[str, Any]:
    """All that must be equal for two rows to stand in one table. The number of samples may grow."""
    content = "\n".join(s.model_dump_json() for s in view.skills) if view is not None else ""
    return {
        "model": model,
        "seed": seed,
        "rollout": rollout.model_dump(mode="json"),
        "settings": settings.model_dump(mode="json"),
        "tasks": {task.task_id: task.content_hash for task in tasks},
        "library": hashlib.sha256(content.encode()).hexdigest()[:16] if view is not None else None,
        "skill": skill.model_dump(mode="json") if view is not None else None,
    }
