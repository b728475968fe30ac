"""KernelGYM over HTTP: a durable queue in front of a pool."""

from ._app import create_app
from ._limits import Limits
from ._metrics import Metrics
from ._run import listen, serve
from ._service import Draining, GymService, QueueFull, TaskConflict
from ._store import StoredTask, TaskStore

__all__ = [
    "Draining",
    "GymService",
    "Limits",
    "Metrics",
    "QueueFull",
    "StoredTask",
    "TaskConflict",
    "TaskStore",
    "create_app",
    "listen",
    "serve",
]
