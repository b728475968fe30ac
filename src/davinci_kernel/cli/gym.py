"""`davinci gym serve`: the evaluator as a service with KernelGYM's HTTP API."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from davinci_kernel.errors import UserError

_LOOPBACK = ("127.0.0.1", "::1", "localhost")


def register(app: typer.Typer) -> None:
    group = typer.Typer(no_args_is_help=True, help="KernelGYM as a service.")
    group.command("serve")(serve)
    group.callback()(lambda: None)
    app.add_typer(group, name="gym")


def serve(
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0: all of this machine's.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: a free one.")] = 10907,
    database: Annotated[Path, typer.Option(help="SQLite file of tasks and results.")] = Path("runs/gym.sqlite"),
    devices: Annotated[str, typer.Option(help="CUDA devices, such as 0,1; empty: the first, if there is one.")] = "",
    compile_slots: Annotated[int, typer.Option(min=0, help="Candidates compiled at once; 0: one per core.")] = 0,
    cache: Annotated[
        bool, typer.Option(help="Answer with the verdict already given on an identical candidate.")
    ] = True,
    max_queue: Annotated[int, typer.Option(min=1, help="Evaluations that may wait; further ones get 429.")] = 10_000,
    max_body_mb: Annotated[float, typer.Option(min=0.001, help="Largest request.")] = 16.0,
    max_trials: Annotated[int, typer.Option(min=1, help="Correctness trials that may be asked for.")] = 100,
    keep_days: Annotated[float, typer.Option(min=0, help="Results are dropped after this.")] = 30.0,
    drain_seconds: Annotated[
        float, typer.Option(min=0, help="After SIGTERM, evaluations under way get so long.")
    ] = 60.0,
) -> None:
    """Judge candidates for trainers and graders over HTTP.

    Accepted tasks survive a killed server: started again on the same database, it runs what is unfinished. With
    KERNELGYM_TOKEN in the environment, clients must send it as a bearer token.
    """
    import asyncio

    from davinci_kernel.gym import GymPool
    from davinci_kernel.gym.server import Limits, TaskStore, listen
    from davinci_kernel.gym.server import serve as serve_gym

    token = os.environ.get("KERNELGYM_TOKEN", "")
    limits = Limits(body_bytes=int(max_body_mb * (1 << 20)), queue=max_queue, correct_trials=max_trials)
    chosen = _devices(devices)
    store = TaskStore(database)
    listener = listen(host, port)
    where = f"http://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}"

    async def run() -> None:
        async with GymPool(compile_slots=compile_slots, cache_verdicts=False, devices=chosen) as pool:
            names = ", ".join(device.device for device in pool.health())
            typer.echo(f"KernelGYM on {where} (devices: {names}; database: {database})", err=True)
            if host not in _LOOPBACK and not token:
                typer.echo("anyone who can reach this address can run code here; set KERNELGYM_TOKEN", err=True)
            await serve_gym(
                pool,
                store,
                listener,
                token=token,
                limits=limits,
                cache=cache,
                keep_days=keep_days,
                drain_seconds=drain_seconds,
                announce=lambda text: typer.echo(text, err=True),
            )

    try:
        asyncio.run(run())
    finally:
        store.close()


def _devices(text: str) -> list[int] | None:
    try:
        return [int(part) for part in text.split(",")] if text else None
    except ValueError:
        raise UserError(f"--devices {text}: expected indices such as 0,1") from None
