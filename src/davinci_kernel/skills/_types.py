"""`Skill`: one reusable piece of kernel-writing knowledge, and what was measured about it."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class Skill(BaseModel):
    """One line of a library snapshot ``global_step_<N>.jsonl``. Unknown fields of published libraries are kept.

    Attributes:
        scope: ``general`` or ``task_specific/<type>``.
        content: Markdown with ``## Motivation``, ``## Key Idea``, ``## Example``.
        verify_speedup: the verified speedup that let it in (None: not verified by execution).
    """

    model_config = ConfigDict(frozen=True, extra="allow")
    name: str = Field(min_length=1)
    description: str = ""
    scope: str = "general"
    tags: tuple[str, ...] = ()
    content: str = ""
    verify_speedup: float | None = None
    provenance: dict[str, Any] = Field(default_factory=dict)
    """Where it came from: step, task_id, group and rollout, turn-1 and best speedup, verification verdict."""

    def header(self) -> str:
        """One line for the selection agent: name, scope, tags, description; never the body."""
        return f"{self.name} [{self.scope}] ({', '.join(self.tags)}): {self.description}"
