"""The fork server: a clean process that has torch imported and forks workers from it in milliseconds.

Started as ``python -m davinci_kernel.gym._forkserver FD`` with a scrubbed environment. It runs no parallel torch
operator itself, since OpenMP's threads do not survive a fork. Requests are messages of `_channel` on the socket FD or on
client sockets handed over by ``client`` requests; replies go back on the same socket:

- ``fork`` {role, scratch, memory_bytes, threads, device} with the worker's channel as descriptor -> {pid}
- ``kill`` {pid, grace} kills the worker's process group and reaps it -> {exit, signal}
- ``release`` {scratch} ends whatever a candidate has left and removes its directory -> {}
- ``client`` with a socket as descriptor: a further requester -> {}

It is its workers' subreaper: what a candidate leaves behind, in whatever session, is killed. When a client's socket closes,
it kills the workers that this client had forked; when the socket FD closes, it kills all workers and exits.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import selectors
import shutil
import signal
import socket
import sys
import time
from typing import Any, NoReturn

from davinci_kernel.gym._channel import Channel, ChannelClosed, ChannelGarbage, ChannelTimeout, close_all
from davinci_kernel.gym._sandbox import confine, leave_host, mount_scratch, unmount_scratch
from davinci_kernel.gym._users import end_user, free_user, own_users

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_STRAY_CHECK_SECONDS = 1.0


def _preload() -> None:
    """Import everything that workers need, once; a candidate's OpenMP runtime starts before any affinity is set."""
    import torch
    import torch.utils._python_dispatch
    import torch.utils.cpp_extension

    from davinci_kernel.gym import _evaluator, _reference_worker, _worker  # noqa: F401
    from davinci_kernel.gym._evidence import warm_up

    with contextlib.suppress(OSError):
        ctypes.CDLL("libgomp.so.1")
    if torch.version.cuda:
        with contextlib.suppress(ImportError):
            import triton  # noqa: F401
    warm_up()


class _Server:
    def __init__(self, main: Channel):
        self.main = main
        self.workers: dict[int, tuple[Channel, int]] = {}
        """By process id: the requester that owns it, and its user."""
        self.homes: dict[str, tuple[Channel, int]] = {}
        """Directories of candidates: the requester that owns it, and its user."""
        self.selector = selectors.DefaultSelector()
        self.selector.register(main, selectors.EVENT_READ)

    def serve(self) -> None:
        while True:
            for key, _ in self.selector.select(_STRAY_CHECK_SECONDS):
                channel = key.fileobj
                assert isinstance(channel, Channel)
                try:
                    request, fds = channel.receive(timeout=30.0, max_fds=1)
                    channel.send(self.answer(request, fds, channel))
                except (ChannelClosed, ChannelGarbage, ChannelTimeout):
                    self.selector.unregister(channel)
                    channel.close()
                    if channel is self.main:
                        return
                    self.kill_owned(channel)
            self.kill_strays()

    def answer(self, request: dict[str, Any], fds: list[int], requester: Channel) -> dict[str, Any]:
        if request["op"] == "fork":
            user = self.user_of(request["scratch"], requester) if request["role"] == "candidate" else 0
            pid = self.fork(request | {"user": user}, fds[0])
            self.workers[pid] = requester, user
            return {"pid": pid}
        if request["op"] == "kill":
            return self.kill(request["pid"], request["grace"])
        if request["op"] == "release":
            self.release(request["scratch"])
            return {}
        self.selector.register(Channel(socket.socket(fileno=fds[0])), selectors.EVENT_READ)
        return {}

    def user_of(self, directory: str, requester: Channel) -> int:
        """The user of a candidate's directory (0: the gym's own): all processes of a candidate share both."""
        if directory not in self.homes:
            mount_scratch(directory)
            user = free_user(user for _, user in self.homes.values()) if own_users() else 0
            if user:
                os.chown(directory, user, user)
            self.homes[directory] = requester, user
        return self.homes[directory][1]

    def release(self, directory: str) -> None:
        """A candidate's directory and what its user still runs go; its workers have ended."""
        if directory in self.homes:
            _, user = self.homes.pop(directory)
            if user:
                end_user(user)
            unmount_scratch(directory)
        shutil.rmtree(directory, ignore_errors=True)

    def fork(self, request: dict[str, Any], channel_fd: int) -> int:
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            _become_worker(request, channel_fd, parent)
        close_all([channel_fd])
        return pid

    def kill(self, pid: int, grace: float) -> dict[str, Any]:
        """Reap a worker, killing its group unless it exits by itself within ``grace`` seconds."""
        if pid not in self.workers:
            return {"exit": None, "signal": None}
        deadline = time.monotonic() + grace
        done, status = os.waitpid(pid, os.WNOHANG)
        while not done and time.monotonic() < deadline:
            time.sleep(0.002)
            done, status = os.waitpid(pid, os.WNOHANG)
        _, user = self.workers.pop(pid)
        if user and all(other != user for _, other in self.workers.values()):
            end_user(user)
        for end in (os.killpg, os.kill)[: 1 if done else 2]:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                end(pid, signal.SIGKILL)
        if not done:
            _, status = os.waitpid(pid, 0)
        self.kill_strays()
        if os.WIFSIGNALED(status):
            return {"exit": None, "signal": signal.Signals(os.WTERMSIG(status)).name}
        return {"exit": os.WEXITSTATUS(status), "signal": None}

    def kill_strays(self) -> None:
        """Kill processes that workers left behind: children of ours that we did not fork, until there are none."""
        while strays := [pid for pid in _children(os.getpid()) if pid not in self.workers]:
            for pid in strays:
                try:
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)
                except (ProcessLookupError, ChildProcessError):
                    pass

    def kill_owned(self, requester: Channel) -> None:
        """Kill what a requester that is gone has forked."""
        for pid in [pid for pid, (owner, _) in self.workers.items() if owner is requester]:
            self.kill(pid, 0.0)
        for directory in [path for path, (owner, _) in self.homes.items() if owner is requester]:
            self.release(directory)

    def kill_all(self) -> None:
        for pid in list(self.workers):
            self.kill(pid, 0.0)


def _children(pid: int) -> list[int]:
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(word) for word in file.read().split()]


def _become_worker(request: dict[str, Any], channel_fd: int, parent: int) -> NoReturn:
    code = 1
    try:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)
        os.setsid()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        fd = os.dup2(channel_fd, 3, inheritable=False) if channel_fd != 3 else 3
        os.closerange(4, 65536)
        role = request["role"]
        sys.path[:] = [entry for entry in sys.path if entry]
        confine(role, request["scratch"], request["memory_bytes"], request["device"] == "cuda", request["user"])
        import torch

        torch.set_num_threads(request["threads"])
        os.environ["OMP_NUM_THREADS"] = str(request["threads"])
        os.environ.pop("PYTORCH_NVML_BASED_CUDA_CHECK", None)  # NVML's files, opened before the fork, are closed
        from davinci_kernel.gym._device import make_device

        device = make_device(request["device"])
        channel = Channel(socket.socket(fileno=fd))
        if role == "candidate":
            from davinci_kernel.gym._worker import serve

            serve(channel, device)
        elif role == "reference":
            from davinci_kernel.gym._reference_worker import serve as serve_reference

            serve_reference(channel, device)
        else:
            from davinci_kernel.gym._evaluator import serve as serve_evaluator

            serve_evaluator(channel)
        code = 0
    except ChannelClosed:
        code = 0
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        os._exit(code)


def main() -> None:
    channel = Channel(socket.socket(fileno=int(sys.argv[1])))
    sys.path[:] = [entry for entry in sys.path if entry not in ("", os.getcwd())]
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    leave_host()
    _preload()
    gc.collect()
    gc.freeze()
    server = _Server(channel)
    try:
        channel.send({"ready": True})
        server.serve()
    finally:
        server.kill_all()
        server.kill_strays()
        for directory in server.homes:
            unmount_scratch(directory)
        shutil.rmtree(os.getcwd(), ignore_errors=True)
        sys.stderr.flush()
        os._exit(0)  # libraries that torch has imported report their leaks at an ordinary exit


if __name__ == "__main__":
    main()
