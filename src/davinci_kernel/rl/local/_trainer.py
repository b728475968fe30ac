"""The one-process trainer: rollout, update, flush, checkpoint; weights shared by generation and training.

    davinci train configs/x.yaml skill.k=4        resumes an interrupted run by itself; Ctrl-C keeps the steps done

One step: tasks are drawn until `batch_tasks` of them have valid rows (at most `max_oversample` batches); their three
agents' rows become one optimizer update; staged skills are flushed only if that update was applied. Every draw derives from
(seed, step, task, scheme, rollout, turn), so a resumed run continues as the uninterrupted one would have.

Left out: KL penalty and entropy bonus (0 in the method), several updates per batch, several processes.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from davinci_kernel.config import TrainConfig, dump_config, load_config
from davinci_kernel.errors import EvaluatorError, UserError
from davinci_kernel.gym import EvalSettings, Gym, has_cuda, open_gym
from davinci_kernel.llm import TransformersLLM
from davinci_kernel.rollout import TaskRollout, co_evolve
from davinci_kernel.skills import Skill, SkillLibrary, SkillStatistics
from davinci_kernel.tasks import Task, load_tasks

from ._checkpoint import forget_after, load_state, newest_checkpoint, save_checkpoint
from ._metrics import open_sinks, rollout_metrics, rollout_rows
from ._optimizer import adamw
from ._replay import Replay
from ._update import update

OnStep = Callable[[int, int, dict[str, float]], None]
MAY_CHANGE = ("run_dir", "device", "loggers", "rl.steps", "rl.save_freq", "rl.keep_checkpoints")
"""Fields of which a resumed run may have other values than the run that it continues."""


def train(config: TrainConfig, *, gym: Gym | None = None, on_step: OnStep | None = None) -> Path:
    """Train, or resume training, to `config.rl.steps` steps; returns the last checkpoint.

    Args:
        gym: judges candidates; None: a pool on this machine.
        on_step: called with (steps done, steps, metrics).

    Raises:
        UserError: unusable tasks, model, data or backend, or a run directory of a different configuration.
        EvaluatorError: a step in which not one rollout survived.
    """
    if gym is None and config.rollout.backend != "cpp" and not has_cuda():
        raise UserError(
            f"rollout.backend: {config.rollout.backend} kernels are timed on a CUDA device, and there is none; "
            "use rollout.backend=cpp"
        )
    run_dir = Path(config.run_dir)
    run_dir.mkdir(parents=True, exist_ok=True)
    _require_same_run(run_dir, config)
    trainer = Trainer(config, run_dir, gym, on_step)
    asyncio.run(trainer.run())
    checkpoint = newest_checkpoint(run_dir)
    assert checkpoint is not None
    return checkpoint


class Trainer:
    """State of a run: everything that a checkpoint holds, and the engines."""

    def __init__(self, config: TrainConfig, run_dir: Path, gym: Gym | None, on_step: OnStep | None) -> None:
        self.config, self.run_dir, self.on_step = config, run_dir, on_step
        self.tasks = load_tasks(config.tasks, config.seed)
        if not self.tasks:
            raise UserError("tasks: none are left after filtering; widen tasks.levels or tasks.source")
        torch.manual_seed(config.seed)
        checkpoint = newest_checkpoint(run_dir)
        quiet = asyncio.Lock()
        self.llm = TransformersLLM.load(
            str(checkpoint or config.model_path),
            device=config.device,
            dtype=getattr(torch, config.dtype),
            batch_invariant=config.rl.batch_invariant,
            lock=quiet,
        )
        self.model: Any = self.llm.model
        self.device = next(self.model.parameters()).device
        self.settings = EvalSettings.from_config(config.gym)
        self.gym: Gym = gym or open_gym(
            self.settings,
            compile_slots=config.gym.compile_slots,
            quiet=quiet,
            cache_verdicts=config.gym.cache_verdicts,
        )
        self.optimizer = adamw(self.model.parameters(), config.rl.learning_rate, config.rl.weight_decay)
        self.statistics = SkillStatistics()
        self.done = self.saved = self.position = 0
        staged: list[str] = []
        if checkpoint is not None:
            state = load_state(checkpoint)
            self.done, self.position, staged = state["step"], state["position"], state["staged"]
            self.saved = self.done
            self.optimizer.load_state_dict(state["optimizer"])
            self.statistics.load_state_dict(json.loads(state["statistics"]))
            torch.set_rng_state(state["rng"])
        forget_after(run_dir, self.done)
        self.library = self._library()
        for skill in staged:
            self.library.stage(Skill.model_validate_json(skill))
        self.replay = Replay(config, self.llm.tokenizer)

    async def run(self) -> None:
        """All remaining steps."""
        config = self.config
        dump_config(config, self.run_dir / "config.yaml")
        _write_tasks(self.run_dir / "tasks.jsonl", self.tasks)
        sinks = open_sinks(self.run_dir, config)
        try:
            while self.done < config.rl.steps:
                position = self.position
                try:
                    metrics = await self.step()
                except asyncio.CancelledError:  # Ctrl-C, during the rollouts: nothing else of this step has happened
                    self.position = position
                    if self.saved < self.done:
                        self.save()
                    raise
                for sink in sinks:
                    sink.log(metrics, self.done)
                if self.on_step:
                    self.on_step(self.done, config.rl.steps, metrics)
                if self.done % config.rl.save_freq == 0 or self.done == config.rl.steps:
                    self.save()
        finally:
            await self.gym.close()
            await self.llm.close()

    async def step(self) -> dict[str, float]:
        """One step: roll out, update, flush."""
        config, started = self.config, time.perf_counter()
        rollouts = await self.collect()
        samples = sorted((s for r in rollouts for s in r.samples), key=lambda s: s.sort_key)
        rolled_out = time.perf_counter()
        metrics = rollout_metrics(rollouts)
        applied = False
        if samples:
            result = update(
                self.model, self.optimizer, samples, self.replay.rows(self.done), config, self.done, self.device
            )
            applied = result.applied
            metrics |= result.metrics
            rows = rollout_rows(rollouts, samples, result.advantages, result.kept, self.llm.tokenizer.decode)
            _write_rows(self.run_dir / "rollouts" / f"step_{self.done + 1}.jsonl.gz", rows)
        self._learn(rollouts, applied, metrics)
        self.done += 1
        now = time.perf_counter()
        return metrics | {
            "time/rollout": rolled_out - started,
            "time/update": now - rolled_out,
            "time/step": now - started,
        }

    async def collect(self) -> list[TaskRollout]:
        """Roll out tasks, each once, until enough of them have valid policy rows."""
        config = self.config
        rollouts: list[TaskRollout] = []
        used: set[int] = set()
        missing, view = config.rl.batch_tasks, self.library.view()
        for _ in range(config.rl.max_oversample):
            rollouts += await asyncio.gather(
                *(
                    co_evolve(
                        task,
                        view,
                        llm=self.llm,
                        gym=self.gym,
                        skill=config.skill,
                        rollout=config.rollout,
                        settings=self.settings,
                        seed=config.seed,
                        step=self.done,
                        count_tokens=lambda text: len(self.llm.tokenizer.encode(text)),
                    )
                    for task in self._next_tasks(missing, used)
                )
            )
            valid = sum(any(s.agent == "policy" for s in r.samples) for r in rollouts)
            missing = config.rl.batch_tasks - valid
            if missing <= 0 or len(used) == len(self.tasks):
                break
        if not any(r.trajectories for r in rollouts):
            raise EvaluatorError(f"step {self.done + 1}: every rollout was lost; the warnings above say to what")
        return rollouts

    def save(self) -> None:
        state = {
            "position": self.position,
            "optimizer": self.optimizer.state_dict(),
            "statistics": json.dumps(self.statistics.state_dict()),
            "staged": [skill.model_dump_json() for skill in self.library.staged],
            "rng": torch.get_rng_state(),
        }
        keep = self.config.rl.keep_checkpoints
        save_checkpoint(self.run_dir, self.done, self.model, self.llm.tokenizer, state, keep)
        self.saved = self.done

    def _learn(self, rollouts: Sequence[TaskRollout], applied: bool, metrics: dict[str, float]) -> None:
        """Statistics, and the library's flush after a successful update."""
        config, step = self.config, self.done + 1
        for r in rollouts:
            chosen = [(s.pool_key, r.best_rewards(s.index)) for s in r.plan.schemes if not s.is_null]
            null = [x for s in r.plan.schemes if s.is_null for x in r.best_rewards(s.index)]
            if r.plan.offered:
                self.statistics.record_task([s.name for s in r.plan.offered], chosen, null)
        metrics["skills/merged"] = 0.0
        if applied and config.skill.enable:
            for skill in (skill for r in rollouts for skill in r.staged):
                self.library.stage(skill.model_copy(update={"provenance": skill.provenance | {"step": step}}))
            if step % config.skill.save_freq == 0 or step == config.rl.steps:
                metrics["skills/merged"] = float(len(self.library.flush(step).merged))
                self.statistics.save(self.run_dir / "skills" / "stats.json")
        metrics["skills/library"] = float(len(self.library))

    def _next_tasks(self, count: int, used: set[int]) -> list[Task]:
        """The next tasks of an endless sequence of seeded permutations, without those in `used`, to which they are added.

        A task rolled out twice in a step would repeat its seeds, and its copies would be each other's baseline.
        """
        chosen: list[Task] = []
        while len(chosen) < count and len(used) < len(self.tasks):
            epoch, place = divmod(self.position, len(self.tasks))
            order = random.Random(f"order/{self.config.seed}/{epoch}").sample(range(len(self.tasks)), len(self.tasks))
            self.position += 1
            if order[place] not in used:
                used.add(order[place])
                chosen.append(self.tasks[order[place]])
        return chosen

    def _library(self) -> SkillLibrary:
        skill, root = self.config.skill, self.run_dir / "skills"
        if self.done:
            return SkillLibrary.load(root, self.done, skill.merge_similarity)
        skills = SkillLibrary.load(Path(skill.library_root)).skills if skill.library_root else ()
        library = SkillLibrary(root, skills, skill.merge_similarity)
        if skill.enable:
            library.flush(0)  # what the run starts with: a run resumed before its first flush finds it here
        return library


def _require_same_run(run_dir: Path, config: TrainConfig) -> None:
    path = run_dir / "config.yaml"
    if not path.exists() or newest_checkpoint(run_dir) is None:
        return
    before, now = (_flat(c.model_dump()) for c in (load_config(TrainConfig, path), config))
    differing = [name for name in now if before.get(name) != now[name] and name not in MAY_CHANGE]
    if differing:
        raise UserError(
            f"{run_dir}: holds a run with another {differing[0]}; choose another run_dir (rl.steps may change on resuming)"
        )


def _flat(fields: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested fields under dotted names, `tasks.options` as one value."""
    flat: dict[str, Any] = {}
    for name, value in fields.items():
        nested = isinstance(value, dict) and name != "options"
        flat |= _flat(value, f"{prefix}{name}.") if nested else {prefix + name: value}
    return flat


def _write_tasks(path: Path, tasks: Sequence[Task]) -> None:
    rows = [{"task_id": t.task_id, "name": t.name, "level": t.level, "code": t.code} for t in tasks]
    _replace(path, "".join(json.dumps(row) + "\n" for row in rows).encode())


def _write_rows(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    path.parent.mkdir(exist_ok=True)
    _replace(path, gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode(), compresslevel=5))


def _replace(path: Path, content: bytes) -> None:
    partial = path.with_name(path.name + ".partial")
    partial.write_bytes(content)
    os.replace(partial, path)
