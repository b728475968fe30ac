"""Metrics of a step, and where they go."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, Protocol

from davinci_kernel.config import TrainConfig
from davinci_kernel.errors import UserError
from davinci_kernel.rollout import Sample, TaskRollout


class Sink(Protocol):
    def log(self, metrics: dict[str, float], step: int) -> None: ...


class JsonLines:
    """`metrics.jsonl`: one object per step, flushed at once."""

    def __init__(self, path: Path) -> None:
        self.file = path.open("a")

    def log(self, metrics: dict[str, float], step: int) -> None:
        self.file.write(json.dumps({"step": step} | metrics) + "\n")
        self.file.flush()


class TensorBoard:
    def __init__(self, run_dir: Path) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise UserError(
                "loggers: tensorboard is not installed; pip install 'davinci-kernel[tensorboard]'"
            ) from None
        self.writer: Any = SummaryWriter(str(run_dir / "tensorboard"))

    def log(self, metrics: dict[str, float], step: int) -> None:
        for name, value in metrics.items():
            self.writer.add_scalar(name, value, step)


class WandB:
    def __init__(self, run_dir: Path, config: TrainConfig) -> None:
        try:
            import wandb
        except ImportError:
            raise UserError("loggers: wandb is not installed; pip install 'davinci-kernel[wandb]'") from None
        self.run: Any = wandb.init(project="davinci-kernel", dir=str(run_dir), config=config.model_dump(mode="json"))

    def log(self, metrics: dict[str, float], step: int) -> None:
        self.run.log(metrics, step=step)


def open_sinks(run_dir: Path, config: TrainConfig) -> list[Sink]:
    sinks: list[Sink] = [JsonLines(run_dir / "metrics.jsonl")]
    sinks += [TensorBoard(run_dir)] if "tensorboard" in config.loggers else []
    sinks += [WandB(run_dir, config)] if "wandb" in config.loggers else []
    return sinks


def rollout_metrics(rollouts: Sequence[TaskRollout]) -> dict[str, float]:
    """What the step's rollouts were like; shares are of the candidates that could be judged.

    Means over nothing are left out rather than made up.
    """
    samples = [s for r in rollouts for s in r.samples]
    turns = [turn for r in rollouts for t in r.trajectories for turn in t.turns]
    verdicts = [turn.verdict for turn in turns if turn.verdict.outcome.is_candidates_fault]
    policy = [s for s in samples if s.agent == "policy"]
    speedups = [v.speedup for v in verdicts if v.speedup is not None]
    named: dict[str, list[float]] = {
        "policy/reward": [s.reward for s in policy],
        "policy/correct": [float(v.correct) for v in verdicts],
        "policy/compiled": [float(v.compiled) for v in verdicts],
        "policy/hack": [float(v.outcome.value == "HACK") for v in verdicts],
        "policy/fast_1": [float(v.correct and (v.speedup or 0.0) > 1.0) for v in verdicts],
        "policy/speedup": speedups,
        "policy/coverage": [v.coverage for v in verdicts if v.coverage is not None],
        "policy/response_tokens": [float(len(s.response_ids)) for s in policy],
        "time/generate": [turn.generate_seconds for turn in turns],
        "time/evaluate": [turn.evaluate_seconds for turn in turns],
        "skills/uplift": [u for r in rollouts if (u := _uplift(r)) is not None],
    }
    for turn in sorted({s.turn for s in policy}):
        named[f"policy/reward_turn_{turn + 1}"] = [s.reward for s in policy if s.turn == turn]
    for agent in ("selection", "summary"):
        rows = [s for s in samples if s.agent == agent]
        named[f"{agent}/reward"] = [s.reward for s in rows]
        named[f"{agent}/parsed"] = [float(s.extra["parsed"]) for s in rows]
    metrics = {name: fmean(values) for name, values in named.items() if values}
    rounds = [r.summary for r in rollouts if r.summary is not None]
    counts = {
        "selection/rows": sum(s.agent == "selection" for s in samples),
        "summary/rows": sum(s.agent == "summary" for s in samples),
        "summary/triggers": len(rounds),
        "skills/proposed": sum(len(r.proposals) for r in rounds),
        "skills/verified": sum(p.speedup is not None for r in rounds for p in r.proposals),
        "rejection/dropped": len(turns) - len(policy),
        "rollouts/failed": sum(r.failed for r in rollouts),
        "tokens/generated": sum(len(s.response_ids) for s in samples),
    }
    return metrics | {name: float(count) for name, count in counts.items()}


def _uplift(rollout: TaskRollout) -> float | None:
    """Mean best reward with skills minus that of the null scheme, where the task has both."""
    with_skills = [x for s in rollout.plan.schemes if s.skills for x in rollout.best_rewards(s.index)]
    without = [x for s in rollout.plan.schemes if s.is_null for x in rollout.best_rewards(s.index)]
    return fmean(with_skills) - fmean(without) if with_skills and without else None


def rollout_rows(
    rollouts: Sequence[TaskRollout],
    samples: Sequence[Sample],
    advantages: Sequence[float],
    kept: Sequence[bool],
    decode: Any,
) -> list[dict[str, Any]]:
    """Every row of the step for `rollouts/step_N.jsonl.gz`."""
    turns = {
        (t.task_id, t.scheme, t.rollout, turn.index): turn for r in rollouts for t in r.trajectories for turn in t.turns
    }
    skills = {(r.task.task_id, s.index): [k.name for k in s.skills] for r in rollouts for s in r.plan.schemes}
    rows = []
    for sample, advantage, keep in zip(samples, advantages, kept, strict=True):
        row: dict[str, Any] = sample.model_dump(
            include={"agent", "task_id", "group", "scheme", "rollout", "turn", "reward", "finish_reason", "extra"}
        )
        row |= {"advantage": advantage, "kept": keep, "verdict": None, "code": None, "skills": []}
        row |= {"prompt": decode(sample.prompt_ids), "response": decode(sample.response_ids)}
        if sample.agent == "policy":
            turn = turns[sample.task_id, sample.scheme, sample.rollout, sample.turn]
            row |= {"verdict": turn.verdict.model_dump(mode="json"), "code": turn.code}
            row["skills"] = skills[sample.task_id, sample.scheme]
        rows.append(row)
    return rows
