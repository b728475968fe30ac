"""Where commands get their gym from."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from davinci_kernel.gym import EvalSettings, Gym


def open_gym(
    settings: EvalSettings, quiet: asyncio.Lock | None = None, *, cache_verdicts: bool = False
) -> AbstractAsyncContextManager[Gym]:
    """A gym on this machine's devices, to be used with ``async with``.

    Args:
        quiet: held while a candidate is measured.
        cache_verdicts: answer for an identical candidate with the verdict already measured.
    """
    from davinci_kernel.gym import GymPool

    return GymPool(settings, quiet=quiet, cache_verdicts=cache_verdicts)
