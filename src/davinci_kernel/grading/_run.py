"""A grading run: every task, several samples, concurrent; interrupted runs continue where they stopped."""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from importlib import metadata
from pathlib import Path
from typing import Any

from davinci_kernel.agents import SELECT_SKILLS, parse_selection, selection_messages
from davinci_kernel.config import RolloutConfig, SkillConfig
from davinci_kernel.errors import UserError
from davinci_kernel.gym import EvalSettings, Gym
from davinci_kernel.llm import LLM, SamplingParams
from davinci_kernel.rollout import PolicyDialogue, Turn, usage_of
from davinci_kernel.skills import LibraryView, Skill, SkillLibrary
from davinci_kernel.tasks import Task, known_defects

from ._metrics import is_fast, summarise
from ._record import AppendLog, Pair, TurnRecord, claim, newest_rows, write_summary
from ._scaling import Scaling, play_episode
from ._table import write_tables
from ._types import GradedTurn, GradeRow, GradeSummary, Price, Spent

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
    scaling: Scaling | None = None,
    price: Price | None = None,
    concurrency: int = 64,
    progress: Progress | None = None,
) -> GradeSummary:
    """Play `samples` episodes per task, judge every turn, and write the run to `out_dir`.

    Finished turns are not played again, except those lost to infrastructure. Every pair has its own seed, so neither
    order nor interruption changes what it samples.

    Args:
        gym: should not answer from a cache of verdicts: two samples of the same code are two measurements.
        model: name or path of the model, for the record.
        library: skills for the policy's prompt; chosen per (task, sample) as `skill.mode` says. None: no skills.
        scaling: sequential test-time scaling; None: one iteration.
        price: of the model's tokens, for the record.
        concurrency: episodes in flight.

    Raises:
        UserError: no tasks, two tasks of one id, or `out_dir` holds a run of other settings.
    """
    _check(tasks, samples)
    skill = skill or SkillConfig.model_validate({})
    view = library.view() if library is not None else None
    scaling, price = scaling or Scaling(), price or Price()
    caliber = _caliber(tasks, model, rollout, settings, seed, view, skill, scaling)
    claim(out_dir, caliber)
    row_log = AppendLog(out_dir / "results.jsonl", GradeRow)
    turn_log = AppendLog(out_dir / "turns.jsonl", TurnRecord)
    rows = newest_rows(row_log.lines)
    recorded: dict[Pair, dict[int, TurnRecord]] = {}
    for line in turn_log.lines:
        if line.turn.verdict.outcome.is_candidates_fault:
            recorded.setdefault((line.task_id, line.sample), {})[line.turn.index] = line
    wanted: dict[Pair, Task] = {(task.task_id, sample): task for sample in range(samples) for task in tasks}
    open_pairs = [pair for pair in wanted if pair not in rows or rows[pair].fault]
    shared = {"caliber": {k: v for k, v in caliber.items() if k != "tasks"}, "packages": _packages()}
    shared["price"] = price.model_dump()
    slots = asyncio.Semaphore(concurrency)

    def report() -> None:
        if progress is not None:
            finished = [row for pair, row in rows.items() if pair in wanted]
            progress(len(finished), len(wanted), _running(finished))

    async def play(pair: Pair) -> None:
        task, sample = wanted[pair], pair[1]
        async with slots:
            own_seed = episode_seed(seed, task.task_id, sample)
            known = recorded.get(pair, {})
            spent = sum((line.spent for line in known.values()), Spent())
            unrecorded = Spent()
            if known and view is not None:
                skills = [s for name in known[min(known)].skills if (s := view.get(name))]
            elif view is not None:
                skills, usage = await _choose(view, task, llm, skill, rollout, own_seed)
                unrecorded = _spent(usage, price)
            else:
                skills = []
            names = tuple(s.name for s in skills)

            def keep(turn: Turn) -> None:
                nonlocal spent, unrecorded
                seconds = {"generate_seconds": turn.generate_seconds, "evaluate_seconds": turn.evaluate_seconds}
                of_turn = unrecorded + _spent(turn.usage, price) + Spent(**seconds)
                spent, unrecorded = spent + of_turn, Spent()
                stored = turn.model_copy(update={"prompt_ids": (), "logprobs": ()})
                turn_log.append(
                    TurnRecord(task_id=task.task_id, sample=sample, skills=names, spent=of_turn, turn=stored)
                )

            dialogue = PolicyDialogue(task, skills, llm=llm, gym=gym, config=rollout, settings=settings, seed=own_seed)
            played = {index: line.turn for index, line in known.items()}
            turns = await play_episode(dialogue, scaling, rollout.max_turn, played, keep)
        hardware = next((h for t in turns if (h := t.verdict.provenance.get("hardware"))), None)
        row = GradeRow(
            task_id=task.task_id,
            name=task.name,
            level=task.level,
            problem_id=task.metadata.get("problem_id"),
            sample=sample,
            defective=bool(known_defects(task)),
            skills=names,
            turns=tuple(GradedTurn.of(turn.index, turn.verdict, turn.code) for turn in turns),
            spent=spent + unrecorded,
            provenance={**shared, "task_hash": task.content_hash, "hardware": hardware},
        )
        row_log.append(row)
        rows[pair] = row
        report()

    report()
    episodes = [asyncio.ensure_future(play(pair)) for pair in open_pairs]
    try:
        await asyncio.gather(*episodes)
    finally:
        for episode in episodes:
            episode.cancel()
        await asyncio.gather(*episodes, return_exceptions=True)
        row_log.close()
        turn_log.close()
    return _finish(out_dir, [rows[pair] for pair in wanted], seed)


def write_run(out_dir: Path, caliber: dict[str, Any], rows: Sequence[GradeRow]) -> GradeSummary:
    """A whole grading run of rows that were judged elsewhere. Raises UserError where `out_dir` holds another run."""
    claim(out_dir, caliber)
    log = AppendLog(out_dir / "results.jsonl", GradeRow)
    for row in rows:
        log.append(row)
    log.close()
    return _finish(out_dir, rows, seed=0)


def _finish(out_dir: Path, rows: Sequence[GradeRow], seed: int) -> GradeSummary:
    summary = summarise(rows, seed, datetime.now(timezone.utc).isoformat(timespec="seconds"))
    write_summary(out_dir, summary)
    write_tables(out_dir, out_dir.resolve().name, summary)
    return summary


def episode_seed(seed: int, task_id: str, sample: int) -> int:
    """31-bit seed of one (task, sample): independent of the other tasks and of their order."""
    digest = hashlib.sha256(f"{seed}\0{task_id}\0{sample}".encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1


async def _choose(
    view: LibraryView, task: Task, llm: LLM, skill: SkillConfig, rollout: RolloutConfig, seed: int
) -> tuple[list[Skill], dict[str, float]]:
    """The skills of one episode, and the tokens that choosing them took."""
    if skill.mode == "bm25":
        return view.recall(task.code, skill.top_k_select, 0), {}
    offered = view.recall(task.code, skill.top_bm25, skill.fallback_sample, seed)
    if not offered:
        return [], {}
    messages = selection_messages(task, offered, skill.task_chars, skill.top_k_select)
    params = SamplingParams(skill.select_max_tokens, rollout.temperature, rollout.top_p, seed)
    completion = await llm.chat(messages, params, [SELECT_SKILLS])
    selection = parse_selection(completion, offered, skill.top_k_select)
    by_name = {s.name: s for s in offered}
    return [by_name[name] for name in selection.names], usage_of(completion)


def _spent(usage: Mapping[str, float], price: Price) -> Spent:
    counted = {name: usage.get(name, 0.0) for name in ("prompt_tokens", "completion_tokens")}
    return Spent(**counted, dollars=price.of(usage))


def _packages() -> dict[str, str]:
    names = ("davinci-kernel", "torch", "transformers", "tokenizers", "openai", "numpy", "datasets", "triton")
    return {d.metadata["Name"]: d.version for d in metadata.distributions() if d.metadata["Name"] in names}


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
    scaling: Scaling,
) -> dict[str, Any]:
    """All that must be equal for two rows to stand in one table. The number of samples may grow."""
    content = "\n".join(s.model_dump_json() for s in view.skills) if view is not None else ""
    return {
        "model": model,
        "seed": seed,
        "rollout": rollout.model_dump(mode="json"),
        "scaling": scaling.model_dump(mode="json"),
        "settings": settings.model_dump(mode="json"),
        "tasks": {task.task_id: task.content_hash for task in tasks},
        "library": hashlib.sha256(content.encode()).hexdigest()[:16] if view is not None else None,
        "skill": skill.model_dump(mode="json") if view is not None else None,
    }
