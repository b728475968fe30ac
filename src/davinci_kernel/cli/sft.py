"""`davinci sft`: cold-start data from the procedural teacher, and supervised fine-tuning."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    sft = typer.Typer(help="Cold start: build data, train on it.", no_args_is_help=True)
    sft.command("build")(build)
    sft.command("train")(train)
    app.add_typer(sft, name="sft")


def build(
    out: Annotated[Path, typer.Argument(help="Directory for sft.parquet and trajectories.jsonl.")],
    config: Annotated[Path | None, typer.Option(help="YAML of ColdStartConfig.")] = None,
    overrides: Annotated[list[str] | None, typer.Argument(help="key=value, such as measured_tasks=20.")] = None,
) -> None:
    """Let the procedural teacher write kernels, measure them in the gym, and build cold-start rows."""
    from davinci_kernel.config import ColdStartConfig, load_config
    from davinci_kernel.sft import build_cold_start

    from ._progress import progress_bar

    settings = load_config(ColdStartConfig, config, overrides or [])
    with progress_bar("measuring the teacher's kernels", settings.measured_tasks) as advance:
        path, counts = build_cold_start(settings, out, on_trajectory=advance)
    for kind, count in sorted(counts.items()):
        typer.echo(f"{kind:18} {count}")
    typer.echo(path)


def train(
    config: Annotated[Path, typer.Argument(help="YAML of SFTConfig.")],
    overrides: Annotated[list[str] | None, typer.Argument(help="key=value, such as learning_rate=1e-5.")] = None,
) -> None:
    """Supervised fine-tuning on assistant tokens; resumes an interrupted run."""
    from davinci_kernel.config import SFTConfig, load_config
    from davinci_kernel.sft import train as train_sft

    from ._progress import progress_bar

    settings = load_config(SFTConfig, config, overrides or [])
    with progress_bar("supervised fine-tuning", settings.max_steps or 1) as advance:
        path = train_sft(
            settings, on_step=lambda step, steps, metrics: advance(step, steps, f"nll {metrics['losses/nll']:.4f}")
        )
    typer.echo(path)
