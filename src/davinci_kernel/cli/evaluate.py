"""`davinci evaluate REF.py CANDIDATE.py`: one verdict, readable or as the full JSON record."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from davinci_kernel.errors import EvaluatorError, UserError

if TYPE_CHECKING:
    from davinci_kernel.gym import Verdict

_TOLERANCES = ("default", "kernelbench", "kernelgym")
_DTYPES = ("float64", "float32", "half", "float8")
_BASELINES = ("eager", "compile", "max-autotune")
_BACKENDS = ("cpp", "triton", "cuda")


def register(app: typer.Typer) -> None:
    @app.command()
    def evaluate(
        reference: Path = typer.Argument(..., help="Module with Model, get_inputs and get_init_inputs."),
        candidate: Path = typer.Argument(..., help="Module with ModelNew."),
        backend: str = typer.Option("cpp", help=f"One of {', '.join(_BACKENDS)}."),
        as_json: bool = typer.Option(False, "--json", help="Print the full record as JSON on stdout."),
        tolerance: str = typer.Option("default", help=f"One of {', '.join(_TOLERANCES)}."),
        tolerance_of: list[str] | None = typer.Option(
            None, metavar="DTYPE=VALUE", help="One tolerance: float64, float32, half or float8; repeatable."
        ),
        baseline: str = typer.Option("eager", help=f"What is timed: {', '.join(_BASELINES)}."),
        trials: int = typer.Option(3, min=1, max=100, help="Correctness trials with fresh inputs."),
        measure: bool = typer.Option(True, help="Time a correct candidate against the reference."),
        timeout: float = typer.Option(30.0, help="Seconds for one run of the candidate."),
        compile_timeout: float = typer.Option(60.0, help="Seconds for compiling the candidate."),
        entry_point: str = typer.Option("Model", help="Class name of the reference."),
    ) -> None:
        """Judge a candidate kernel against a PyTorch reference: correct, honest, how fast.

        With KERNELGYM_SERVER_URL in the environment that server judges, otherwise this machine.

        Exit code 0 for any verdict, 2 for unusable arguments, 3 when the evaluator itself failed.
        """
        _choice("--backend", backend, _BACKENDS)
        _choice("--tolerance", tolerance, _TOLERANCES)
        _choice("--baseline", baseline, _BASELINES)
        overrides = dict(_tolerance(text) for text in tolerance_of or [])
        for flag, seconds in (("--timeout", timeout), ("--compile-timeout", compile_timeout)):
            if not 0 < seconds < float("inf"):
                raise UserError(f"{flag} {seconds:g}: expected a positive number of seconds")

        from davinci_kernel.tasks import load_reference_file, read_source

        task, candidate_code = load_reference_file(reference, entry_point), read_source(candidate)

        import asyncio

        from davinci_kernel.gym import Candidate, EvalSettings, Outcome, open_gym

        settings = EvalSettings.model_validate(
            {
                "tolerance": tolerance,
                "tolerance_overrides": overrides,
                "baseline": baseline,
                "num_correct_trials": trials,
                "measure": measure,
                "run_timeout": timeout,
                "compile_timeout": compile_timeout,
            }
        )
        judged = Candidate.model_validate({"code": candidate_code, "backend": backend})

        async def judge() -> Verdict:
            async with open_gym(settings, compile_slots=1, cache_verdicts=False) as gym:
                return await gym.evaluate(task, judged)

        with _waiting(f"evaluating {candidate.name}"):
            verdict = asyncio.run(judge())
        if as_json:
            typer.echo(verdict.model_dump_json(indent=2))
        else:
            _show(verdict)
        if verdict.outcome is Outcome.INFRA_ERROR:
            raise EvaluatorError(verdict.message)


def _choice(flag: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise UserError(f"{flag} {value}: expected one of {', '.join(choices)}")


def _tolerance(text: str) -> tuple[str, float]:
    name, _, number = text.partition("=")
    try:
        value = float(number)
    except ValueError:
        value = -1.0
    if name not in _DTYPES or not 0 <= value < float("inf"):
        raise UserError(f"--tolerance-of {text}: expected {'|'.join(_DTYPES)}=NUMBER, such as float32=1e-3")
    return name, value


def _waiting(text: str) -> Any:
    from rich.console import Console

    return Console(stderr=True).status(text)


def _show(verdict: Verdict) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    color = "green" if verdict.correct else "red"
    console.print(Text(verdict.outcome.value + (f" ({verdict.hack})" if verdict.hack else ""), style=f"bold {color}"))
    if verdict.message:
        console.print(Text(verdict.message))
    rows = Table(show_header=False, box=None)
    if verdict.speedup is not None and verdict.speedup_interval is not None:
        low, high = verdict.speedup_interval
        rows.add_row("speedup", f"{verdict.speedup:.2f}x  (95 % interval {low:.2f} to {high:.2f})")
    if verdict.reference_ms is not None and verdict.kernel_ms is not None:
        rows.add_row("reference", f"{verdict.reference_ms:.3f} ms")
        rows.add_row("candidate", f"{verdict.kernel_ms:.3f} ms")
    if verdict.coverage is not None:
        rows.add_row("coverage", f"{verdict.coverage:.2f}")
    hardware = verdict.provenance.get("hardware", {})
    if hardware:
        rows.add_row("measured on", f"{hardware['cpu']}, {hardware['threads']} threads, torch {hardware['torch']}")
    console.print(rows)
