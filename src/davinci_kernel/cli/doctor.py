"""`davinci doctor`: what this machine can evaluate, and how well candidates are locked in."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess

import typer

_UNTIMED = {
    "triton": "no CUDA device: correctness by the interpreter, compiled for sm_90, not timed",
    "cuda": "no CUDA device: compiled for sm_90, not run",
}


def register(app: typer.Typer) -> None:
    @app.command()
    def doctor() -> None:
        """Show backends, compilers, sandbox layers, cores, PyTorch and CUDA of this machine."""
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        table = Table(show_header=False, box=None)
        for name, fact in _facts():
            table.add_row(name, Text(fact))
        Console().print(table)


def _facts() -> list[tuple[str, str]]:
    import torch

    from davinci_kernel import __version__
    from davinci_kernel.gym import cpu_model, has_cuda, missing_package, sandbox_layers, usable_cores

    compiler = _compiler()
    cuda = torch.cuda.get_device_name() if torch.cuda.is_available() else "not detected"
    return [
        ("davinci-kernel", __version__),
        ("python", platform.python_version()),
        ("torch", torch.__version__),
        ("processor", f"{cpu_model()}, {usable_cores()} cores usable"),
        ("CUDA", cuda),
        ("compiler", compiler or "g++ not found: install it (apt-get install g++)"),
        ("backend cpp", "works" if compiler else "needs g++"),
        ("backend triton", missing_package("triton") or ("works" if has_cuda() else _UNTIMED["triton"])),
        ("backend cuda", missing_package("cuda") or ("works" if has_cuda() else _UNTIMED["cuda"])),
        *((f"sandbox: {layer}", "active" if active else "not available") for layer, active in sandbox_layers().items()),
    ]


def _compiler() -> str | None:
    path = shutil.which(os.environ.get("CXX", "g++"))
    if path is None:
        return None
    shown = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout.splitlines()
    return shown[0] if shown else path
