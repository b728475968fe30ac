"""Published tasks on which no verdict says anything about a kernel: our own list, from `davinci tasks audit`."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files

from ._task import Task


@cache
def _listed() -> dict[str, dict[str, str]]:
    text = (files("davinci_kernel.tasks") / "data" / "defective.json").read_text()
    return {content_hash: entry["findings"] for content_hash, entry in json.loads(text)["defective"].items()}


def known_defects(task: Task) -> dict[str, str]:
    """Findings and their reasons, by the task's content; empty for a task that is not on the list."""
    return dict(_listed().get(task.content_hash, {}))
