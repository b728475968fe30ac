"""Reasoning blocks in a model's text."""

from __future__ import annotations

import re

_BLOCK = re.compile(r"<think>(.*?)(?:</think>|\Z)", re.DOTALL)


def split_thinking(text: str) -> tuple[str, str]:
    """Part a model's reasoning from its answer.

    A template may have opened the block in the prompt, so everything before a lone ``</think>`` is reasoning too; a
    block that was never closed leaves no answer.

    Returns:
        The reasoning (blocks joined by newlines) and the text without it, both stripped.
    """
    thoughts = [match.strip() for match in _BLOCK.findall(text)]
    opened_in_prompt, _, answer = _BLOCK.sub("", text).rpartition("</think>")
    return "\n".join(filter(None, (opened_in_prompt.strip(), *thoughts))), answer.strip()


def with_thinking(think: str, answer: str) -> str:
    """The inverse: an answer with its reasoning block in front; no block where there is no reasoning."""
    return f"<think>\n{think}\n</think>\n\n{answer}" if think else answer
