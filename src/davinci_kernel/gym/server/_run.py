"""Serve a gym until a signal says to stop."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from types import FrameType

import uvicorn

from davinci_kernel.errors import UserError

from ._app import create_app
from ._limits import Limits
from ._metrics import Metrics
from ._service import GymService, JudgesHere
from ._store import TaskStore

_SHUTDOWN_SLACK = 5


async def serve(
    pool: JudgesHere,
    store: TaskStore,
    listener: socket.socket,
    *,
    token: str = "",
    limits: Limits | None = None,
    cache: bool = True,
    keep_days: float = 30.0,
    drain_seconds: float = 60.0,
    announce: Callable[[str], None] = print,
) -> None:
    """Answer on ``listener`` until SIGTERM or SIGINT, then finish what is under way; a second signal ends it at once."""
    limits, metrics = limits or Limits(), Metrics()
    service = GymService(pool, store, max_queue=limits.queue, cache=cache, on_verdict=metrics.observe)
    app = create_app(
        service, token=token, limits=limits, metrics=metrics, keep_days=keep_days, drain_seconds=drain_seconds
    )
    config = uvicorn.Config(
        app, log_level="warning", access_log=False, timeout_graceful_shutdown=_SHUTDOWN_SLACK, lifespan="on"
    )
    server = _Server(config, service, announce)
    await server.serve(sockets=[listener])
    if left := len(store.unfinished()):
        announce(f"{left} unfinished tasks are on record and run at the next start")


def listen(host: str, port: int) -> socket.socket:
    """A listening socket.

    Raises:
        UserError: the address is taken or not this machine's.
    """
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address[:2], family=family)
    except OSError as error:
        raise UserError(f"--host {host} --port {port}: {error.strerror}; choose another port or address") from None


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, service: GymService, announce: Callable[[str], None]):
        super().__init__(config)
        self.service, self.announce = service, announce

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """The first signal drains; a further one gives up what is under way."""
        self.force_exit = self.should_exit
        self.should_exit = True
        if not self.force_exit:
            self.announce(f"stopping: {self.service.under_way} evaluations under way are finished first")
        loop = asyncio.get_running_loop()
        loop.call_soon_threadsafe(self.service.give_up if self.force_exit else self.service.begin_drain)
