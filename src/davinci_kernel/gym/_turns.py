"""Who may use a device when: many compiles and correctness runs, or one measurement alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Turns:
    """Shared turns, at most ``slots`` at once, and exclusive ones; a waiting exclusive turn goes first.

    Args:
        slots: shared turns at once.
        quiet: held during an exclusive turn, so that whoever else uses the device never disturbs a measurement.
    """

    def __init__(self, slots: int, quiet: asyncio.Lock | None = None):
        self.slots, self.quiet = slots, quiet or asyncio.Lock()
        self.sharing = self.waiting = 0
        self.taken = False
        self._changed = asyncio.Condition()

    @asynccontextmanager
    async def shared(self) -> AsyncIterator[None]:
        async with self._changed:
            await self._changed.wait_for(lambda: not self.taken and not self.waiting and self.sharing < self.slots)
            self.sharing += 1
        try:
            yield
        finally:
            async with self._changed:
                self.sharing -= 1
                self._changed.notify_all()

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        async with self._changed:
            self.waiting += 1
            try:
                await self._changed.wait_for(lambda: not self.taken and not self.sharing)
                self.taken = True
            finally:
                self.waiting -= 1
                self._changed.notify_all()
        try:
            async with self.quiet:
                yield
        finally:
            async with self._changed:
                self.taken = False
                self._changed.notify_all()
