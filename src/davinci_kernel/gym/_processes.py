"""The callers' side of the fork server: start it, fork workers, talk to them, end them."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from typing import Any

from davinci_kernel.errors import EvaluatorError

from ._channel import Channel, ChannelClosed, ChannelGarbage, ChannelTimeout
from ._device import DeviceName
from ._sandbox import clean_environment

_START_SECONDS = 120.0
_FORK_SECONDS = 30.0
BUSY_CPU = 0.01
"""CPU seconds after which a process that is still computing is not just letting its OpenMP threads go to sleep."""
_IDLE_POLL = 0.0002
_IDLE_CPU = 0.00005


class WorkerGone(Exception):
    """A worker ended without an answer: `reason` says how."""

    def __init__(self, reason: str, killed_for_time: bool = False):
        super().__init__(reason)
        self.reason, self.killed_for_time = reason, killed_for_time


class WorkerFailed(Exception):
    """The model's code raised; `kind` is ``exception``, ``memory`` or ``compile``."""

    def __init__(self, message: str, kind: str):
        super().__init__(message)
        self.kind = kind


class ForkClient:
    """A connection to a running fork server."""

    def __init__(self, channel: Channel):
        self.channel = channel
        self._lock = threading.Lock()

    def request(
        self, message: dict[str, Any], fds: Sequence[int] = (), timeout: float = _FORK_SECONDS
    ) -> dict[str, Any]:
        try:
            with self._lock:
                self.channel.send(message, fds)
                return self.channel.receive(timeout)[0]
        except (ChannelClosed, ChannelTimeout, ChannelGarbage) as error:
            raise EvaluatorError(f"fork server lost: {type(error).__name__} {error}") from None

    def fork(
        self, role: str, scratch: str, *, memory_bytes: int, threads: int, device: DeviceName = "cpu"
    ) -> WorkerProcess:
        """Fork a worker in a role; its working directory is ``scratch``."""
        ours, theirs = Channel.pair()
        message = {"op": "fork", "role": role, "scratch": scratch, "memory_bytes": memory_bytes}
        message |= {"threads": threads, "device": device}
        pid = self.request(message, [theirs.fileno()])["pid"]
        theirs.close()
        return WorkerProcess(self, pid, ours)

    def release(self, scratch: str) -> None:
        """Remove a candidate's directory, and end whatever it has left behind."""
        self.request({"op": "release", "scratch": scratch})

    def connect(self) -> socket.socket:
        """A socket on which another process can be a client."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        self.request({"op": "client"}, [theirs.fileno()])
        theirs.close()
        return ours


class WorkerProcess:
    """One forked worker and its channel."""

    def __init__(self, client: ForkClient, pid: int, channel: Channel):
        self.client, self.pid, self.channel = client, pid, channel
        self._ids = itertools.count(1)
        self.alive = True

    def call(self, op: str, timeout: float, *, fds: Sequence[int] = (), **fields: Any) -> dict[str, Any]:
        return self.call_with_fds(op, timeout, fds=fds, max_fds=0, **fields)[0]

    def call_with_fds(
        self, op: str, timeout: float, *, fds: Sequence[int] = (), max_fds: int = 1, **fields: Any
    ) -> tuple[dict[str, Any], list[int]]:
        """Ask the worker and wait.

        Raises:
            WorkerGone: it ended, broke the protocol, or was killed for time.
            WorkerFailed: the model's code raised.
        """
        number = next(self._ids)
        try:
            self.channel.send({"op": op, "id": number, **fields}, fds, timeout)
            reply, out_fds = self.channel.receive(timeout, max_fds)
        except ChannelTimeout:
            self.end()
            raise WorkerGone(f"no answer within {timeout:g} s", killed_for_time=True) from None
        except ChannelGarbage as error:
            self.end()
            raise WorkerGone(f"the process wrote into the evaluator's channel ({error})") from None
        except ChannelClosed:
            raise WorkerGone(self.end(grace=2.0)) from None
        if reply.get("id") != number:
            self.end()
            raise WorkerGone("the process wrote into the evaluator's channel (unasked answer)")
        if "error" in reply:
            raise WorkerFailed(str(reply["error"])[:8000], str(reply.get("kind")))
        return reply, out_fds

    def cpu_seconds(self) -> float:
        """CPU time that all threads of the process have used, read from outside."""
        try:
            return time.clock_gettime((~self.pid << 3) | 2)
        except OSError:
            raise WorkerGone(self.end(grace=2.0)) from None

    def pause(self) -> None:
        """Stop the process group: whatever it left running disturbs nobody until `resume`."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        if self.alive:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)

    def end(self, grace: float = 0.0) -> str:
        """Kill the process group (after ``grace`` seconds to exit by itself), reap it and say how it ended."""
        if not self.alive:
            return "the process has ended"
        self.alive = False
        self.channel.close()
        status = self.client.request({"op": "kill", "pid": self.pid, "grace": grace})
        if status["signal"]:
            return f"the process died of {status['signal']}"
        return f"the process exited with code {status['exit']} before it answered"


def wait_idle(worker: WorkerProcess) -> bool:
    """Wait until a process computes nothing; False if it has gone on for `BUSY_CPU` of CPU time."""
    first = last = worker.cpu_seconds()
    while last - first < BUSY_CPU:
        time.sleep(_IDLE_POLL)
        now = worker.cpu_seconds()
        if now - last < _IDLE_CPU:
            return True
        last = now
    return False


class ForkServer:
    """Starts a fork server and owns its scratch directory; `close` ends both.

    Args:
        threads: of each worker.
        cuda_device: the only CUDA device that workers see, as ``CUDA_VISIBLE_DEVICES`` names it.
    """

    def __init__(self, threads: int, cuda_device: str = ""):
        self.scratch = tempfile.mkdtemp(prefix="davinci-gym-")
        os.chmod(self.scratch, 0o711)  # a candidate that is a user of its own has its directory in it
        ours, theirs = Channel.pair()
        command = [sys.executable, "-m", "davinci_kernel.gym._forkserver", str(theirs.fileno())]
        self.process = subprocess.Popen(
            command,
            env=clean_environment(self.scratch, threads) | {"CUDA_VISIBLE_DEVICES": cuda_device},
            cwd=self.scratch,
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        theirs.close()
        self.client = ForkClient(ours)
        try:
            ours.receive(_START_SECONDS)
        except (ChannelClosed, ChannelTimeout, ChannelGarbage) as error:
            self.close()
            raise EvaluatorError(f"the fork server did not start: {type(error).__name__}") from None

    def close(self) -> None:
        self.client.channel.close()
        try:
            self.process.wait(10.0)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.scratch, ignore_errors=True)

    def directory(self, name: str) -> str:
        path = os.path.join(self.scratch, name)
        os.makedirs(path, exist_ok=True)
        return path
