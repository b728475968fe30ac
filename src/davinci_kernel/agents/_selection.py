"""The selection agent: picks skills for a task by their headers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, ValidationError

from davinci_kernel.llm import Completion, Message, ToolSchema
from davinci_kernel.skills import Skill
from davinci_kernel.tasks import Task

from ._tools import find_call, tool_message

SELECT_SKILLS: ToolSchema = {
    "type": "function",
    "function": {
        "name": "select_skills",
        "description": "Choose the skills that help to write a fast kernel for the task.",
        "parameters": {
            "type": "object",
            "properties": {
                "think": {"type": "string"},
                "selected_skills": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {"name": {"type": "string"}, "reason": {"type": "string"}},
                        "required": ["name", "reason"],
                    },
                },
            },
            "required": ["think", "selected_skills"],
        },
    },
}
"""The tool that the selection agent calls once."""

_NAME = SELECT_SKILLS["function"]["name"]
_SEPARATORS = re.compile(r"[\s_\-/]+")


@dataclass(frozen=True)
class Selection:
    """A parsed selection.

    Attributes:
        names: names of offered skills, as the library spells them, in the order of choice.
        parsed: False where there was no call with valid arguments; such a scheme has no skills.
    """

    names: tuple[str, ...] = ()
    think: str = ""
    parsed: bool = False


class _Choice(BaseModel):
    model_config = ConfigDict(strict=True)
    name: str
    reason: str


class _Arguments(BaseModel):
    model_config = ConfigDict(strict=True)
    think: str
    selected_skills: list[_Choice]


def selection_messages(task: Task, offered: Sequence[Skill], task_chars: int, limit: int = 3) -> list[Message]:
    """The task, cut at `task_chars` characters, and the numbered headers of the offered skills; never their bodies."""
    system = [
        "Select the skills that help to write a fast kernel for the task.",
        f"Call select_skills once, with at most {limit} names from the list; none is a valid choice.",
    ]
    headers = [f"{number}. {' '.join(skill.header().split())}" for number, skill in enumerate(offered, start=1)]
    user = ["Task:", "```python", task.code.strip("\n")[:task_chars], "```", "Skills:", *headers]
    return [{"role": "system", "content": "\n".join(system)}, {"role": "user", "content": "\n".join(user)}]


def parse_selection(completion: Completion, offered: Sequence[Skill], limit: int) -> Selection:
    """Read the call of `SELECT_SKILLS`.

    Names match whatever their case and separators. Unknown names and duplicates are dropped; the first `limit` stay.
    """
    call, thought = find_call(completion, _NAME)
    if call is None:
        return Selection(think=thought)
    try:
        arguments = _Arguments.model_validate(call.arguments)
    except ValidationError:
        return Selection(think=thought)
    known = {_normal(skill.name): skill.name for skill in reversed(offered)}
    exact = {skill.name for skill in offered}
    wanted = [choice.name.strip() for choice in arguments.selected_skills]
    found = [name if name in exact else known.get(_normal(name)) for name in wanted]
    names = tuple(dict.fromkeys(name for name in found if name is not None))
    return Selection(names=names[:limit], think=arguments.think, parsed=True)


def selection_answer(think: str, selected: Sequence[tuple[str, str]]) -> Message:
    """The assistant message that selects (name, reason) pairs: what `parse_selection` reads back."""
    chosen = [{"name": name, "reason": reason} for name, reason in selected]
    return tool_message(_NAME, {"think": think, "selected_skills": chosen})


def _normal(name: str) -> str:
    return _SEPARATORS.sub(" ", name).strip().lower()
