"""`davinci llm`: a model as an OpenAI-compatible server."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Annotated, Literal

import typer

from davinci_kernel.errors import UserError


def register(app: typer.Typer) -> None:
    llm = typer.Typer(help="Language models: serve one.", no_args_is_help=True)
    llm.callback()(lambda: None)
    llm.command("serve")(serve)
    app.add_typer(llm, name="llm")


def serve(
    model: Annotated[str, typer.Argument(help="HF model directory, hub id, or a .gguf file.")],
    name: Annotated[str, typer.Option(help="Name that requests give; default: the last part of MODEL.")] = "",
    host: Annotated[str, typer.Option(help="Address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any free port.")] = 8000,
    device: Annotated[str, typer.Option(help="`auto`, `cpu`, `cuda`, `cuda:1` ...")] = "auto",
    dtype: Annotated[
        Literal["auto", "float32", "bfloat16"],
        typer.Option(help="auto: float32 on CPU, the checkpoint's own elsewhere."),
    ] = "auto",
    max_batch: Annotated[int, typer.Option(min=1, help="Answers that are decoded together.")] = 64,
    batch_invariant: Annotated[
        bool, typer.Option("--batch-invariant", help="One at a time: equal seeds give equal bits. Slower.")
    ] = False,
    max_waiting: Annotated[int, typer.Option(min=1, help="Answers in work or waiting before status 429.")] = 1024,
    api_key: Annotated[
        str, typer.Option(envvar="DAVINCI_LLM_API_KEY", help="Wanted as a bearer token; default: none.")
    ] = "",
) -> None:
    """Serve MODEL at http://HOST:PORT/v1: /models and /chat/completions, tools and streaming included. Ctrl-C ends it."""
    import uvicorn

    from davinci_kernel.llm import TransformersLLM
    from davinci_kernel.llm.server import chat_app

    listening = _listen(host, port)
    with listening:
        engine = TransformersLLM.load(
            model,
            device=device,
            dtype=None if dtype == "auto" else dtype,
            max_batch=max_batch,
            batch_invariant=batch_invariant,
        )
        called = name or Path(model).name.removesuffix(".gguf")
        app = chat_app(engine, called, api_key=api_key, max_waiting=max_waiting)
        typer.echo(f"serving {called} at http://{host}:{listening.getsockname()[1]}/v1", err=True)
        uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listening])


def _listen(host: str, port: int) -> socket.socket:
    """A bound socket, taken before the model is loaded, so that a port in use is known at once."""
    try:
        return socket.create_server((host, port))
    except OSError as error:
        raise UserError(f"--host {host} --port {port}: {error.strerror or error}; choose another") from None
