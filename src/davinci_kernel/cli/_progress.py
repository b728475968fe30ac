"""One look for every progress bar: on stderr, with a figure of the work beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

Advance = Callable[..., None]
"""`advance()` counts one; `advance(done, total, figure)` sets all three."""


@contextmanager
def progress_bar(title: str, total: int) -> Iterator[Advance]:
    """A bar for `total` pieces of work. In a file it appears with the first one, so that an error before it stands alone."""
    columns = [
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    ]
    progress = Progress(*columns, TextColumn("{task.fields[figure]}"), console=Console(stderr=True))
    bar = progress.add_task(title, total=total, figure="")

    def advance(done: int | None = None, total: int | None = None, figure: str = "") -> None:
        progress.start()
        progress.update(bar, advance=1 if done is None else None, completed=done, total=total, figure=figure)

    if progress.console.is_terminal:
        progress.start()
    try:
        yield advance
    finally:
        if progress.live.is_started:
            progress.stop()
