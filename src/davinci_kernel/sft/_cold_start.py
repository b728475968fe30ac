"""Cold-start data end to end: generated tasks, the teacher's measured trajectories, rows, parquet."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from davinci_kernel.config import ColdStartConfig, SkillConfig
from davinci_kernel.errors import UserError
from davinci_kernel.gym import EvalSettings, open_gym
from davinci_kernel.llm import write_rows
from davinci_kernel.tasks import load_tasks

from ._kernels import supports
from ._plan import Habits
from ._rows import Mix, build_rows
from ._teacher import measure


def build_cold_start(
    config: ColdStartConfig, out: Path, *, on_trajectory: Callable[[], None] | None = None
) -> tuple[Path, dict[str, int]]:
    """Write `<out>/sft.parquet`; returns its path and the rows per kind. Measured trajectories survive a kill.

    Raises:
        UserError: too few tasks that the teacher can write.
    """
    tasks = [task for task in load_tasks(config.tasks, config.seed) if supports(task)]
    if len(tasks) < config.measured_tasks:
        raise UserError(
            f"measured_tasks={config.measured_tasks}, but the teacher can write {len(tasks)} tasks; raise tasks.limit"
        )
    habits = Habits()

    async def measured():
        settings = EvalSettings.from_config(config.gym)
        async with open_gym(settings, compile_slots=config.gym.compile_slots) as gym:
            return await measure(
                tasks[: config.measured_tasks],
                gym=gym,
                settings=settings,
                turns=config.turns,
                habits=habits,
                seed=config.seed,
                path=out / "trajectories.jsonl",
                on_trajectory=on_trajectory,
            )

    trajectories = asyncio.run(measured())
    mix = Mix(config.policy, config.policy_skill, config.trajectories, config.selection, config.summary)
    rows = build_rows(tasks, trajectories, mix, habits, config.seed, SkillConfig().task_chars)
    path = out / "sft.parquet"
    write_rows(rows, path)
    return path, dict(Counter(row.kind for row in rows))
