"""The summary agent: turns an improvement into skills."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from davinci_kernel.llm import Completion, Message, ToolSchema
from davinci_kernel.skills import Skill
from davinci_kernel.tasks import Task

from ._advice import forbidden_advice
from ._tools import find_call, tool_message

_STRING = {"type": "string"}
UPDATE_SKILL_LIBRARY: ToolSchema = {
    "type": "function",
    "function": {
        "name": "update_skill_library",
        "description": "Propose skills that the improvement teaches, for use on other tasks.",
        "parameters": {
            "type": "object",
            "properties": {
                "think": _STRING,
                "new_skills": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {
                            "name": _STRING,
                            "description": _STRING,
                            "scope": {"type": "string", "description": "general or task_specific/<type>"},
                            "tags": {"type": "array", "items": _STRING, "minItems": 3, "maxItems": 6},
                            "content": {"type": "string", "description": "## Motivation, ## Key Idea, ## Example"},
                        },
                        "required": ["name", "description", "scope", "tags", "content"],
                    },
                },
            },
            "required": ["think", "new_skills"],
        },
    },
}
"""The tool that the summary agent calls once."""

_NAME = UPDATE_SKILL_LIBRARY["function"]["name"]
_SKILL_NAME = re.compile(r"[^\W_][\w \-./+]{0,79}")
_SCOPE = re.compile(r"general|task_specific/[\w\-]+")
_HEADINGS = ("## Motivation", "## Key Idea", "## Example")


@dataclass(frozen=True)
class Summary:
    """A parsed summary.

    Attributes:
        skills: proposals that passed every check, not yet verified by execution.
        parsed: False where there was no call with valid arguments.
        rejected: (name, reason) of the proposals that did not pass.
    """

    skills: tuple[Skill, ...] = ()
    think: str = ""
    parsed: bool = False
    rejected: tuple[tuple[str, str], ...] = ()


class _Proposal(BaseModel):
    model_config = ConfigDict(strict=True)
    name: str
    description: str
    scope: str
    tags: list[str]
    content: str


class _Arguments(BaseModel):
    model_config = ConfigDict(strict=True)
    think: str
    new_skills: list[Any]


def summary_messages(
    task: Task,
    skills: Sequence[Skill],
    first_code: str,
    first_speedup: float,
    best_code: str,
    best_speedup: float,
    limit: int = 2,
) -> list[Message]:
    """The task, the headers of the skills the policy had, turn-1 and best code with their speedups."""
    system = [
        "Two kernels for one task follow; the second is faster.",
        "Write down what made it faster, as skills that help on other tasks.",
        f"Call update_skill_library once, with at most {limit} skills.",
        "scope: general or task_specific/<type>. tags: 3 to 6 words.",
        "content: Markdown with ## Motivation, ## Key Idea and ## Example, short.",
        "A skill teaches how to write a kernel; never to use a library or torch.compile instead.",
    ]
    headers = [" ".join(skill.header().split()) for skill in skills] or ["none"]
    user = [
        *("Task:", *_fenced(task.code)),
        *("Skills that the writer had:", *headers),
        *("First kernel:", f"speedup {first_speedup:.2f}", *_fenced(first_code)),
        *("Best kernel:", f"speedup {best_speedup:.2f}", *_fenced(best_code)),
    ]
    return [{"role": "system", "content": "\n".join(system)}, {"role": "user", "content": "\n".join(user)}]


def parse_summary(
    completion: Completion, limit: int, count_tokens: Callable[[str], int], max_content_tokens: int = 512
) -> Summary:
    """Read the call of `UPDATE_SKILL_LIBRARY` and check each proposed skill.

    Args:
        completion: the answer.
        limit: most skills of one summary; later ones are rejected.
        count_tokens: tokens of a text in the policy's tokenizer.
        max_content_tokens: longest skill body.
    """
    call, thought = find_call(completion, _NAME)
    if call is None:
        return Summary(think=thought)
    try:
        arguments = _Arguments.model_validate(call.arguments)
    except ValidationError:
        return Summary(think=thought)
    skills: list[Skill] = []
    rejected: list[tuple[str, str]] = []
    for number, item in enumerate(arguments.new_skills, start=1):
        name = item["name"] if isinstance(item, dict) and isinstance(item.get("name"), str) else f"skill {number}"
        try:
            proposal = _Proposal.model_validate(item)
        except ValidationError as error:
            field = ".".join(map(str, error.errors()[0]["loc"])) or "skill"
            rejected.append((name, f"{field}: {error.errors()[0]['msg']}"))
            continue
        reason = _fault(proposal, count_tokens, max_content_tokens)
        if reason is None and number > limit:
            reason = f"more than {limit} skills"
        if reason:
            rejected.append((name, reason))
        else:
            skills.append(_skill(proposal))
    return Summary(tuple(skills), arguments.think, True, tuple(rejected))


def summary_answer(think: str, skills: Sequence[Skill]) -> Message:
    """The assistant message that proposes the skills: what `parse_summary` reads back."""
    proposals = [
        {"name": s.name, "description": s.description, "scope": s.scope, "tags": list(s.tags), "content": s.content}
        for s in skills
    ]
    return tool_message(_NAME, {"think": think, "new_skills": proposals})


def _fenced(code: str) -> tuple[str, str, str]:
    return ("```python", code.strip("\n"), "```")


def _skill(proposal: _Proposal) -> Skill:
    return Skill(
        name=proposal.name.strip(),
        description=" ".join(proposal.description.split()),
        scope=proposal.scope.strip(),
        tags=tuple(tag.strip() for tag in proposal.tags),
        content=proposal.content.strip(),
    )


def _fault(proposal: _Proposal, count_tokens: Callable[[str], int], max_content_tokens: int) -> str | None:
    if not _SKILL_NAME.fullmatch(proposal.name.strip()):
        return "name: expected one line of 1 to 80 letters, digits, spaces and _ - . / +"
    if not proposal.description.strip():
        return "description: empty"
    if not _SCOPE.fullmatch(proposal.scope.strip()):
        return "scope: expected general or task_specific/<type>"
    if not 3 <= len(proposal.tags) <= 6 or not all(tag.strip() for tag in proposal.tags):
        return "tags: expected 3 to 6 words"
    lines = {line.strip() for line in proposal.content.splitlines()}
    missing = [heading for heading in _HEADINGS if heading not in lines]
    if missing:
        return f"content: no section {missing[0]}"
    tokens = count_tokens(proposal.content.strip())
    if tokens > max_content_tokens:
        return f"content: {tokens} tokens, at most {max_content_tokens}"
    return forbidden_advice(f"{proposal.name}\n{proposal.description}\n{proposal.content}")
