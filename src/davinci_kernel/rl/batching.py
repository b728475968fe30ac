"""Micro-batches of similar length, so that little padding is computed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence


def micro_batches(lengths: Sequence[int], max_tokens: int) -> Iterator[list[int]]:
    """Indices of rows in order of length, in parts of at most `max_tokens` padded tokens (a longer row stands alone)."""
    part: list[int] = []
    for index in sorted(range(len(lengths)), key=lambda i: (lengths[i], i)):
        if part and lengths[index] * (len(part) + 1) > max_tokens:
            yield part
            part = []
        part.append(index)
    if part:
        yield part
