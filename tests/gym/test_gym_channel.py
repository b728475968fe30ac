"""Messages from a peer that may be hostile."""

import os

import pytest

from davinci_kernel.gym._channel import MAX_MESSAGE, Channel, ChannelClosed, ChannelGarbage, ChannelTimeout


@pytest.fixture
def pair():
    ours, theirs = Channel.pair()
    yield ours, theirs
    ours.close()
    theirs.close()


def test_message_and_descriptor_arrive(pair):
    ours, theirs = pair
    read_end, write_end = os.pipe()
    ours.send({"a": [1, "x"]}, [write_end])
    message, fds = theirs.receive(5.0, max_fds=1)
    os.write(fds[0], b"hi")
    assert message == {"a": [1, "x"]}
    assert os.read(read_end, 2) == b"hi"
    for fd in (read_end, write_end, fds[0]):
        os.close(fd)


@pytest.mark.parametrize(
    "data",
    [
        (MAX_MESSAGE + 1).to_bytes(4, "big"),
        b"\x00\x00\x00\x03abc",
        b"\x00\x00\x00\x02[]",
        b"\x00\x00\x00\x02\xff\xfe",
        (200_000).to_bytes(4, "big") + b"[" * 200_000,
    ],
    ids=["too long", "no json", "no object", "no text", "deep nesting"],
)
def test_garbage_is_refused(pair, data):
    ours, theirs = pair
    theirs.sock.setsockopt(1, 7, 1 << 20)
    theirs.sock.sendall(data)
    with pytest.raises(ChannelGarbage):
        ours.receive(5.0)


def test_half_a_message_times_out(pair):
    ours, theirs = pair
    theirs.sock.sendall(b"\x00\x00\x00\x09{")
    with pytest.raises(ChannelTimeout):
        ours.receive(0.05)


def test_closed_peer(pair):
    ours, theirs = pair
    theirs.close()
    with pytest.raises(ChannelClosed):
        ours.receive(5.0)
