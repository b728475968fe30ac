"""What the first lines of an adversarial file say, and whether a verdict is what they require."""

from __future__ import annotations

import re
from pathlib import Path

from davinci_kernel.gym import Outcome, Verdict

LOW_COVERAGE = 0.5


def header(path: Path, name: str) -> str:
    """The text after ``# <name>:``; empty where there is none."""
    match = re.search(rf"^# {name}: (.+)$", path.read_text(), re.MULTILINE)
    return match[1].strip() if match else ""


def fits(verdict: Verdict, required: str) -> bool:
    """`OUTCOME`, `HACK:<class>`, or `CORRECT:low-coverage`, the honest answer where only coverage can tell."""
    outcome, _, detail = required.partition(":")
    if verdict.outcome is not Outcome(outcome):
        return False
    if detail == "low-coverage":
        return verdict.coverage is not None and verdict.coverage < LOW_COVERAGE
    return not detail or verdict.hack == detail
