"""Concurrent parts of one task, each of which may fail without costing the others."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

log = logging.getLogger(__name__)
T = TypeVar("T")


async def gather_surviving(parts: Iterable[Coroutine[Any, Any, T]], what: str) -> list[T | None]:
    """Results in the order of `parts`; None, and a logged warning that names `what` was lost, for one that raised."""
    results: list[T | None] = []
    for result in await asyncio.gather(*parts, return_exceptions=True):
        if isinstance(result, Exception):
            log.warning("%s was lost: %s: %s", what, type(result).__name__, result)
            results.append(None)
        elif isinstance(result, BaseException):
            raise result
        else:
            results.append(result)
    return results
