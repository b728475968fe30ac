"""The procedural teacher at work: it writes a kernel, has the gym measure it, revises, and keeps what was measured."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from davinci_kernel.errors import UserError
from davinci_kernel.gym import Candidate, EvalSettings, Gym, Outcome, Verdict
from davinci_kernel.tasks import Task

from ._kernels import supports, write_kernel
from ._plan import Habits, Plan, improve

SLIP_SHARE = 0.1


@dataclass(frozen=True)
class MeasuredTurn:
    """A kernel of the teacher and its verdict. `slip`: the kernel skipped the task's first operator, as writers do."""

    plan: Plan
    verdict: Verdict
    slip: bool = False

    def code(self, task: Task) -> str:
        """The turn's kernel, for the measured task or another one."""
        return write_kernel(slipped(task) if self.slip else task, self.plan)


def slipped(task: Task) -> Task:
    """The task without its first operator: what a careless writer implements."""
    return replace(task, metadata=task.metadata | {"steps": task.metadata["steps"][1:]})


@dataclass(frozen=True)
class MeasuredTrajectory:
    """A task, and what the gym said of the teacher's successive kernels for it."""

    task: Task
    turns: tuple[MeasuredTurn, ...]

    def best(self) -> MeasuredTurn:
        return max(self.turns, key=lambda t: t.verdict.speedup or 0.0)


def plan_trajectory(task: Task, turns: int, habits: Habits, seed: int) -> list[tuple[Plan, bool]]:
    """The plans of successive turns, and whether each slips: habits first, then one revision a turn.

    A share of trajectories slips on its first turn; the second turn then repairs that and nothing else.
    """
    rng = random.Random(f"teacher/{seed}/{task.task_id}")
    plans = [(habits.draw(rng), len(task.metadata["steps"]) > 1 and rng.random() < SLIP_SHARE)]
    while len(plans) < turns:
        plan, slip = plans[-1]
        plans.append((plan if slip else improve(plan, rng), False))
    return plans


async def measure(
    tasks: Sequence[Task],
    *,
    gym: Gym,
    settings: EvalSettings,
    turns: int,
    habits: Habits,
    seed: int,
    path: Path,
    on_trajectory: Callable[[], None] | None = None,
) -> list[MeasuredTrajectory]:
    """Measure one trajectory per task. Finished ones are appended to `path` (JSON lines) and not measured again.

    Every turn that does not slip must be CORRECT: the teacher does not teach what it cannot do. A turn that the gym could not judge or
    time (INFRA_ERROR, too noisy) leaves its trajectory out.

    Raises:
        UserError: a task is not a generated one, or `path` holds another seed's trajectories.
        RuntimeError: the gym refused one of the teacher's kernels; the message holds verdict and code.
    """
    if unsupported := [t.task_id for t in tasks if not supports(t)]:
        raise UserError(f"the procedural teacher writes generated tasks only, not {unsupported[0]}")
    done = _read(path, {task.task_id: task for task in tasks}, seed)
    with path.open("a") as file:

        async def one(task: Task) -> None:
            plans = plan_trajectory(task, turns, habits, seed)
            written = [write_kernel(slipped(task) if slip else task, plan) for plan, slip in plans]
            verdicts = await gym.evaluate_many([(task, Candidate(code=code)) for code in written], settings)
            for (_, slip), code, verdict in zip(plans, written, verdicts, strict=True):
                if verdict.outcome.is_candidates_fault and not verdict.correct and not slip:
                    raise RuntimeError(f"{task.task_id}: {verdict.outcome.value}: {verdict.message}\n{code}")
            measured = tuple(MeasuredTurn(p, v, s) for (p, s), v in zip(plans, verdicts, strict=True))
            record = {
                "task_id": task.task_id,
                "seed": seed,
                "turns": [
                    {"plan": asdict(t.plan), "slip": t.slip, "verdict": t.verdict.model_dump(mode="json")}
                    for t in measured
                ],
            }
            file.write(json.dumps(record) + "\n")
            file.flush()
            done[task.task_id] = MeasuredTrajectory(task, measured)
            if on_trajectory:
                on_trajectory()

        await asyncio.gather(*(one(task) for task in tasks if task.task_id not in done))
    measured = [done[task.task_id] for task in tasks]
    return [t for t in measured if all(turn.slip or _timed(turn.verdict) for turn in t.turns)]


def _timed(verdict: Verdict) -> bool:
    return verdict.outcome is Outcome.CORRECT and verdict.speedup is not None


def _read(path: Path, tasks: dict[str, Task], seed: int) -> dict[str, MeasuredTrajectory]:
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        return {}
    done = {}
    whole = [line for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]
    path.write_text("".join(whole))  # a line that a kill cut off is measured again
    for number, line in enumerate(whole, start=1):
        record = json.loads(line)
        if record["seed"] != seed:
            raise UserError(
                f"{path}:{number}: measured with seed {record['seed']}, not {seed}; choose another directory"
            )
        if task := tasks.get(record["task_id"]):
            turns = tuple(
                MeasuredTurn(Plan(**turn["plan"]), Verdict.model_validate(turn["verdict"]), turn["slip"])
                for turn in record["turns"]
            )
            done[task.task_id] = MeasuredTrajectory(task, turns)
    return done
