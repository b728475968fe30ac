"""`davinci grade`: a model's KernelBench metrics on a set of tasks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from davinci_kernel.errors import UserError

from ._grade_compare import compare, show
from ._grade_group import GradeGroup
from ._grade_kernelbench import export_run, import_run

if TYPE_CHECKING:
    from davinci_kernel.grading import GradeSummary
    from davinci_kernel.llm import LLM
    from davinci_kernel.skills import SkillLibrary


commands = typer.Typer(
    cls=GradeGroup,
    help="Grade models, and compare what was graded. `davinci grade MODEL` is `davinci grade run MODEL`.",
)


def register(app: typer.Typer) -> None:
    commands.command("run")(grade)
    commands.command()(compare)
    commands.command()(show)
    commands.command("import")(import_run)
    commands.command("export")(export_run)
    app.add_typer(commands, name="grade", no_args_is_help=True)


def grade(
    model_path: Annotated[
        str, typer.Argument(help="HF model directory or hub id; with --openai-base-url its name there.")
    ],
    tasks: Annotated[
        str, typer.Option(help="`generator`, `suite`, a KernelBench folder, a .jsonl or .parquet file, or a hub id.")
    ] = "generator",
    split: Annotated[str, typer.Option(help="Split of the generator or the hub data set.")] = "heldout",
    limit: Annotated[int, typer.Option(min=0, help="Tasks after shuffling with the seed; 0: all.")] = 0,
    levels: Annotated[list[int] | None, typer.Option("--level", help="Keep this level; may be repeated.")] = None,
    samples: Annotated[int, typer.Option(min=1, help="Episodes per task.")] = 8,
    turns: Annotated[int, typer.Option(min=1, help="Turns per episode.")] = 3,
    iterations: Annotated[
        int, typer.Option(min=1, help="Sequential test-time scaling: iterations of --turns turns each.")
    ] = 1,
    keep: Annotated[int, typer.Option(min=0, help="Turns of the history that a new iteration sees.")] = 4,
    keep_by: Annotated[
        Literal["best", "last"], typer.Option(help="Which of them: best by reward, or the last.")
    ] = "best",
    library: Annotated[Path | None, typer.Option(help="Skills for the policy: a run's skills/ folder.")] = None,
    skill_mode: Annotated[
        Literal["agent", "bm25"], typer.Option(help="Who chooses among them: the selection agent, or BM25 alone.")
    ] = "agent",
    out: Annotated[Path | None, typer.Option(help="Directory of the run; default: runs/grades/<model>.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of tasks and sampling.")] = 0,
    temperature: Annotated[float, typer.Option(min=0)] = 1.0,
    top_p: Annotated[float, typer.Option(min=0.01, max=1)] = 0.95,
    max_response_tokens: Annotated[int, typer.Option(min=1, help="New tokens per turn.")] = 8192,
    correct_trials: Annotated[int, typer.Option(min=1, max=100, help="Correctness trials per kernel.")] = 5,
    baseline: Annotated[
        Literal["eager", "compile", "max-autotune"], typer.Option(help="What kernels are timed against.")
    ] = "eager",
    price_in: Annotated[float, typer.Option(min=0, help="Dollars per million prompt tokens.")] = 0.0,
    price_out: Annotated[float, typer.Option(min=0, help="Dollars per million answer tokens.")] = 0.0,
    backend: Annotated[Literal["cpp", "triton", "cuda"], typer.Option(help="What the model writes.")] = "cpp",
    device: Annotated[str, typer.Option(help="`auto`, `cpu`, `cuda` ... of the model.")] = "auto",
    openai_base_url: Annotated[
        str | None, typer.Option(help="An OpenAI-compatible server; key in OPENAI_API_KEY.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The summary as JSON on stdout.")] = False,
) -> None:
    """Play several episodes per task, measure every kernel, and print fast_p, correctness and speedups.

    An interrupted run continues where it stopped when the command is repeated.
    """
    from rich.console import Console

    from davinci_kernel.config import GymConfig, RolloutConfig, SkillConfig, TasksConfig, validated
    from davinci_kernel.grading import Price, Scaling, render_table
    from davinci_kernel.tasks import load_tasks

    source = {"source": tasks, "split": split, "limit": limit, "levels": tuple(levels or ())}
    loaded = load_tasks(validated(TasksConfig, source, "--tasks"), seed)
    sampling = {
        "max_turn": turns,
        "temperature": temperature,
        "top_p": top_p,
        "max_response_tokens": max_response_tokens,
        "backend": backend,
    }
    judging = {"num_correct_trials": correct_trials, "cache_verdicts": False, "baseline": baseline}
    out_dir = out or Path("runs") / "grades" / (Path(model_path).name or "model")
    summary = _run(
        model_path,
        loaded,
        samples=samples,
        seed=seed,
        out_dir=out_dir,
        rollout=validated(RolloutConfig, sampling, "rollout"),
        skill=validated(SkillConfig, {"mode": skill_mode}, "--skill-mode"),
        gym_config=validated(GymConfig, judging, "gym"),
        library=_library(library),
        scaling=Scaling(iterations=iterations, keep=keep, keep_by=keep_by),
        price=Price(prompt=price_in, completion=price_out),
        device=device,
        openai_base_url=openai_base_url,
    )
    if as_json:
        typer.echo(json.dumps(summary.to_json(), indent=1))
    else:
        Console().print(render_table({out_dir.name: summary}))
    typer.echo(f"written to {out_dir}", err=True)


def _library(folder: Path | None) -> SkillLibrary | None:
    from davinci_kernel.skills import SkillLibrary

    if folder is None:
        return None
    if not folder.is_dir():
        raise UserError(f"--library {folder}: no such folder; give a run's skills/ folder")
    return SkillLibrary.load(folder / "skills" if (folder / "skills").is_dir() else folder)


def _engine(model_path: str, device: str, openai_base_url: str | None, quiet: Any) -> LLM:
    import os

    from davinci_kernel.llm import OpenAILLM, TransformersLLM

    if openai_base_url is not None:
        return OpenAILLM(model_path, openai_base_url, os.environ.get("OPENAI_API_KEY", ""))
    return TransformersLLM.load(model_path, device=device, lock=quiet)


def _run(
    model_path: str, tasks: list[Any], *, gym_config: Any, device: str, openai_base_url: str | None, **run: Any
) -> GradeSummary:
    import asyncio

    from davinci_kernel.grading import grade
    from davinci_kernel.gym import EvalSettings, open_gym

    from ._progress import progress_bar

    settings = EvalSettings.from_config(gym_config)

    async def play(advance: Any) -> GradeSummary:
        quiet = asyncio.Lock()
        llm = _engine(model_path, device, openai_base_url, quiet)
        try:
            async with open_gym(settings, quiet=quiet, cache_verdicts=False) as gym:
                return await grade(
                    tasks, llm=llm, gym=gym, settings=settings, model=model_path, progress=advance, **run
                )
        finally:
            await llm.close()

    with progress_bar("grading", len(tasks) * run["samples"]) as advance:
        return asyncio.run(play(advance))
