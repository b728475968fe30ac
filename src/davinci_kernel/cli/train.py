"""`davinci train`: reinforcement learning with the three agents, in one process."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    app.command("train")(train)


def train(
    config: Annotated[str, typer.Argument(help="YAML of TrainConfig, or a preset's name, such as qwen3_8b_skill.")],
    overrides: Annotated[list[str] | None, typer.Argument(help="key=value, such as skill.k=4.")] = None,
    resume: Annotated[
        bool, typer.Option("--resume/--no-resume", help="Continue the run directory's run, or refuse if it holds one.")
    ] = True,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the resolved configuration and stop.")] = False,
) -> None:
    """Train a policy; a run directory with checkpoints is resumed."""
    from omegaconf import OmegaConf

    from davinci_kernel.config import TrainConfig, load_config

    preset = Path(__file__).parent.parent / "configs" / "rl" / f"{config}.yaml"
    settings = load_config(TrainConfig, preset if preset.is_file() else config, overrides or [])
    if dry_run:
        typer.echo(OmegaConf.to_yaml(OmegaConf.create(settings.model_dump(mode="json"))), nl=False)
        return

    from davinci_kernel.errors import UserError
    from davinci_kernel.rl.local import newest_checkpoint
    from davinci_kernel.rl.local import train as train_local

    from ._progress import progress_bar
    from .quickstart import rl_figure

    if not resume and newest_checkpoint(Path(settings.run_dir)) is not None:
        raise UserError(f"{settings.run_dir}: holds checkpoints; choose another run_dir or leave out --no-resume")
    with progress_bar("reinforcement learning", settings.rl.steps) as advance:
        path = train_local(settings, on_step=lambda step, steps, metrics: advance(step, steps, rl_figure(metrics)))
    typer.echo(path)
