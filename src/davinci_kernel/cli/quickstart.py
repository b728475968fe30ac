"""`davinci quickstart`: the whole loop on one machine, phase by phase; a finished phase is not run again.

cold start (real kernels, measured) → small model → SFT → grade → RL with the co-evolving library → grade → report
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from davinci_kernel.config import QuickstartConfig, SFTConfig, TrainConfig

LABELS = ("sft", "rl")
FIGURES = {"reward": "policy/reward", "correct": "policy/correct", "fast_1": "policy/fast_1"}
SUMMARY_FIELDS = ("fast_1", "fast_1.2", "fast_1.5", "fast_2", "correct", "geomean_speedup")


def register(app: typer.Typer) -> None:
    app.command("quickstart")(quickstart)


def quickstart(
    run_dir: Annotated[Path, typer.Option(help="Everything is written here.")] = Path("runs/quickstart"),
    seed: Annotated[int, typer.Option(help="Seed of tasks, model and sampling.")] = 0,
    config: Annotated[Path | None, typer.Option(help="YAML of QuickstartConfig.")] = None,
    overrides: Annotated[list[str] | None, typer.Argument(help="key=value, such as rl.rl.steps=50.")] = None,
) -> None:
    """Cold start, SFT, RL with three agents and a growing skill library, grading before and after, report."""
    from davinci_kernel.config import QuickstartConfig, dump_config, load_config
    from davinci_kernel.errors import UserError
    from davinci_kernel.report import write_report

    built_in = Path(__file__).parent.parent / "configs" / "quickstart.yaml"
    recipe = load_config(QuickstartConfig, config or built_in, overrides or [])
    sft_config, rl_config = _configs(recipe, run_dir, seed)
    stored = run_dir / "quickstart.json"
    identity = {"seed": seed, "config": recipe.model_dump(mode="json")}
    if stored.exists() and json.loads(stored.read_text()) != identity:
        raise UserError(f"{run_dir}: holds a quickstart of another seed or configuration; choose another --run-dir")
    run_dir.mkdir(parents=True, exist_ok=True)
    stored.write_text(json.dumps(identity, indent=1))
    dump_config(recipe, run_dir / "recipe.yaml")
    _announce()

    phases = Phases(run_dir / "phases.json")
    with phases.timed("cold_start"):
        _cold_start(recipe, run_dir, seed)
    with phases.timed("sft"):
        _sft(recipe, sft_config)
    with phases.timed("grade_sft"):
        _grade("sft", run_dir / "sft" / "model", recipe, rl_config, run_dir, seed)
    with phases.timed("rl"):
        _rl(rl_config)
    with phases.timed("grade_rl"):
        _grade("rl", _newest_checkpoint(run_dir), recipe, rl_config, run_dir, seed)
    summary = _summary(run_dir, phases.seconds, seed)
    with phases.timed("report"):
        report = write_report(run_dir)
    _print_table(summary)
    typer.echo(f"report: {report}")


class Phases:
    """Seconds spent per phase, kept over interruptions."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.seconds: dict[str, float] = json.loads(path.read_text()) if path.exists() else {}

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        started = time.monotonic()
        try:
            yield
        finally:
            self.seconds[name] = round(self.seconds.get(name, 0.0) + time.monotonic() - started, 1)
            partial = self.path.with_suffix(".partial")
            partial.write_text(json.dumps(self.seconds))
            partial.replace(self.path)


def _announce() -> None:
    import torch

    cores = len(os.sched_getaffinity(0))
    cuda = f"; CUDA: {torch.cuda.get_device_name()}" if torch.cuda.is_available() else "; no CUDA device"
    typer.echo(f"davinci quickstart on {cores} CPU cores{cuda}. The kernels are C++ for the CPU.", err=True)


def _configs(recipe: QuickstartConfig, run_dir: Path, seed: int) -> tuple[SFTConfig, TrainConfig]:
    from davinci_kernel.config import SFTConfig, TrainConfig, validated

    data = str(run_dir / "data" / "sft.parquet")
    sft = {"run_dir": str(run_dir / "sft"), "model_path": str(run_dir / "initial_model"), "data": data, "seed": seed}
    rl = {"run_dir": str(run_dir), "model_path": str(run_dir / "sft" / "model"), "sft_data": data, "seed": seed}
    return validated(SFTConfig, recipe.sft | sft, "quickstart sft"), validated(
        TrainConfig, recipe.rl | rl, "quickstart rl"
    )


def _cold_start(recipe: QuickstartConfig, run_dir: Path, seed: int) -> None:
    from davinci_kernel.sft import build_cold_start

    from ._progress import progress_bar

    if (run_dir / "data" / "sft.parquet").exists():
        return
    config = recipe.cold_start.model_copy(update={"seed": seed})
    with progress_bar("cold start: measuring the teacher's kernels", config.measured_tasks) as advance:
        _, counts = build_cold_start(config, run_dir / "data", on_trajectory=advance)
    typer.echo(f"cold start: {sum(counts.values())} rows: {counts}", err=True)


def _sft(recipe: QuickstartConfig, config: SFTConfig) -> None:
    from davinci_kernel.llm import conversation_texts, read_rows, save_model, small_model, train_tokenizer
    from davinci_kernel.sft import train

    from ._progress import progress_bar

    if not (Path(config.model_path) / "config.json").exists():
        tokenizer = train_tokenizer(conversation_texts(read_rows(config.data)), recipe.model.vocab_size)
        shape = recipe.model.model_dump(exclude={"vocab_size"})
        model = small_model(tokenizer, **shape, max_positions=2 * config.max_length, seed=config.seed)
        save_model(model, tokenizer, config.model_path)
        typer.echo(f"small model: {model.num_parameters() / 1e6:.2f} M parameters", err=True)
    with progress_bar("supervised fine-tuning", config.max_steps) as advance:
        train(config, on_step=lambda step, steps, metrics: advance(step, steps, f"nll {metrics['losses/nll']:.4f}"))


def _rl(config: TrainConfig) -> None:
    from davinci_kernel.rl.local import train

    from ._progress import progress_bar

    with progress_bar("reinforcement learning", config.rl.steps) as advance:
        train(config, on_step=lambda step, steps, m: advance(step, steps, rl_figure(m)))


def rl_figure(metrics: dict[str, float]) -> str:
    """What a person watches: reward, share of fast kernels, library size."""
    shown = [f"{name} {metrics[key]:.2f}" for name, key in FIGURES.items() if key in metrics]
    return f"{', '.join(shown)}, library {metrics['skills/library']:.0f}"


def _newest_checkpoint(run_dir: Path) -> Path:
    return max((run_dir / "checkpoints").glob("step_*"), key=lambda path: int(path.name.removeprefix("step_")))


def _grade(label: str, model: Path, recipe: QuickstartConfig, config: TrainConfig, run_dir: Path, seed: int) -> None:
    import asyncio

    from davinci_kernel.grading import grade
    from davinci_kernel.gym import EvalSettings, open_gym
    from davinci_kernel.llm import TransformersLLM
    from davinci_kernel.tasks import load_tasks

    from ._progress import progress_bar

    if (run_dir / "grades" / label / "summary.json").exists():
        return
    held_out = config.tasks.model_copy(update={"split": "heldout", "limit": recipe.grade_tasks})
    tasks = load_tasks(held_out, seed)
    settings = EvalSettings.from_config(recipe.grade_gym)

    async def run(advance: Any) -> None:
        quiet = asyncio.Lock()
        llm = TransformersLLM.load(str(model), device=config.device, lock=quiet)
        async with open_gym(
            settings, compile_slots=recipe.grade_gym.compile_slots, quiet=quiet, cache_verdicts=False
        ) as gym:
            await grade(
                tasks,
                llm=llm,
                gym=gym,
                rollout=config.rollout,
                settings=settings,
                samples=recipe.grade_samples,
                seed=seed,
                out_dir=run_dir / "grades" / label,
                progress=advance,
            )
        await llm.close()

    with progress_bar(f"grading {label} on held-out tasks", len(tasks) * recipe.grade_samples) as advance:
        asyncio.run(run(advance))


def _summary(run_dir: Path, seconds: dict[str, float], seed: int) -> dict[str, Any]:
    grades = {label: json.loads((run_dir / "grades" / label / "summary.json").read_text()) for label in LABELS}
    steps = [json.loads(line) for line in (run_dir / "metrics.jsonl").read_text().splitlines()]
    summary: dict[str, Any] = {label: {name: grades[label][name] for name in SUMMARY_FIELDS} for label in LABELS}
    summary["skills"] = {
        "proposed": int(sum(step["skills/proposed"] for step in steps)),
        "verified": int(sum(step["skills/verified"] for step in steps)),
        "library": int(steps[-1]["skills/library"]),
    }
    summary |= {"seconds": seconds, "seed": seed}
    partial = run_dir / "summary.json.partial"
    partial.write_text(json.dumps(summary, indent=1))
    partial.replace(run_dir / "summary.json")
    return summary


def _print_table(summary: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("", *LABELS, title=f"Held-out tasks, last turn, 95 % intervals (seed {summary['seed']})")
    for name in SUMMARY_FIELDS:
        cells = [summary[label][name] for label in LABELS]
        table.add_row(name, *(f"{c['value']:.2f} [{c['low']:.2f}, {c['high']:.2f}]" for c in cells))
    console = Console()
    console.print(table)
    skills = summary["skills"]
    console.print(
        f"skills: {skills['proposed']} proposed, {skills['verified']} verified, {skills['library']} in the library"
    )
    console.print("seconds: " + ", ".join(f"{name} {value:.0f}" for name, value in summary["seconds"].items()))
