"""Length-prefixed JSON messages over a unix stream socket, with file descriptors beside them where the peer is trusted.

A candidate's process is one end of such a channel, so the receiving side bounds the size and the time of a message,
accepts nothing but a JSON object and drops descriptors unless it asked for them.
"""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Sequence
from typing import Any

MAX_MESSAGE = 16 << 20
"""Bytes of the largest message accepted."""


class ChannelClosed(Exception):
    """The peer has gone away."""


class ChannelTimeout(Exception):
    """The peer did not answer in time."""


class ChannelGarbage(Exception):
    """The peer sent something that is not a message."""


class Channel:
    """One end of a socket pair."""

    def __init__(self, sock: socket.socket):
        self.sock = sock

    @staticmethod
    def pair() -> tuple[Channel, Channel]:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        return Channel(ours), Channel(theirs)

    def fileno(self) -> int:
        return self.sock.fileno()

    def close(self) -> None:
        self.sock.close()

    def send(self, message: dict[str, Any], fds: Sequence[int] = (), timeout: float | None = 30.0) -> None:
        """Send one message; descriptors travel with its first bytes.

        Raises:
            ChannelClosed: the peer is gone.
            ChannelTimeout: the peer reads nothing.
        """
        body = json.dumps(message).encode()
        data = len(body).to_bytes(4, "big") + body
        try:
            self.sock.settimeout(timeout)
            sent = socket.send_fds(self.sock, [data[:4]], list(fds)) if fds else 0
            self.sock.sendall(data[sent:])
        except TimeoutError:
            raise ChannelTimeout from None
        except OSError as error:
            raise ChannelClosed(str(error)) from None

    def receive(self, timeout: float | None = None, max_fds: int = 0) -> tuple[dict[str, Any], list[int]]:
        """The next message and its descriptors.

        Raises:
            ChannelClosed: the peer is gone.
            ChannelTimeout: no complete message within ``timeout`` seconds.
            ChannelGarbage: a message that is too long or no JSON object.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        head, fds = self._read(4, deadline, max_fds)
        size = int.from_bytes(head, "big")
        try:
            if size > MAX_MESSAGE:
                raise ChannelGarbage(f"message of {size} bytes")
            body, _ = self._read(size, deadline, 0)
            message = json.loads(body)
        except (ValueError, RecursionError):
            close_all(fds)
            raise ChannelGarbage("not JSON") from None
        except (ChannelGarbage, ChannelClosed, ChannelTimeout):
            close_all(fds)
            raise
        if not isinstance(message, dict):
            close_all(fds)
            raise ChannelGarbage("not a JSON object")
        return message, fds

    def _read(self, size: int, deadline: float | None, max_fds: int) -> tuple[bytes, list[int]]:
        data, fds = bytearray(), list[int]()
        try:
            while len(data) < size:
                left = None if deadline is None else deadline - time.monotonic()
                if left is not None and left <= 0:
                    raise ChannelTimeout
                self.sock.settimeout(left)
                if max_fds:
                    part, new, _, _ = socket.recv_fds(self.sock, size - len(data), max_fds)
                    fds += new
                else:
                    part = self.sock.recv(min(size - len(data), 1 << 20))
                if not part:
                    raise ChannelClosed("end of stream")
                data += part
        except TimeoutError:
            close_all(fds)
            raise ChannelTimeout from None
        except OSError as error:
            close_all(fds)
            raise ChannelClosed(str(error)) from None
        return bytes(data), fds


def close_all(fds: Sequence[int]) -> None:
    for fd in fds:
        os.close(fd)
