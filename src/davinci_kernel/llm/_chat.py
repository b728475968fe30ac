"""Conversations to token ids, one way for prompts, training rows and further turns.

A conversation is tokenised in the pieces in which a rollout produces it: the first prompt, what the model answered,
the glue up to the next answer, the next answer, and so on. Hence `render_prompt` of a conversation's beginning is a
prefix of `render_with_mask` of all of it, whatever merges the tokenizer would make across a border, and also where a
template strips the reasoning of earlier turns: what was generated stays in the prompt.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from davinci_kernel.errors import UserError

from ._template import calls_as_text, tools_as_text
from ._types import Message, ToolSchema

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_PROBE = "PROBE0ANSWER"
_OPENING: list[Message] = [{"role": "user", "content": "PROBE0QUESTION"}]


def render_prompt(
    tokenizer: PreTrainedTokenizerBase,
    messages: Sequence[Message],
    tools: Sequence[ToolSchema] | None = None,
    add_generation_prompt: bool = True,
    enable_thinking: bool = False,
) -> list[int]:
    """Token ids of a conversation that waits for an answer.

    Args:
        tools: given as Hermes text in the system message where the template has no tools.
        add_generation_prompt: False: the template's plain rendering of all messages, tokenised at once.
        enable_thinking: passed to the template.

    Raises:
        UserError: the tokenizer has no chat template, or the template refuses the conversation.
    """
    if not add_generation_prompt:
        return _encode(tokenizer, _render(tokenizer, messages, tools, False, enable_thinking))
    last = max((i for i, message in enumerate(messages) if message["role"] == "assistant"), default=-1)
    if last < 0:
        return _encode(tokenizer, _render(tokenizer, messages, tools, True, enable_thinking))
    ids, _ = render_with_mask(tokenizer, messages[: last + 1], tools, enable_thinking)
    return ids + _glue(tokenizer, messages[last + 1 :], enable_thinking)[1:]


def render_with_mask(
    tokenizer: PreTrainedTokenizerBase,
    messages: Sequence[Message],
    tools: Sequence[ToolSchema] | None = None,
    enable_thinking: bool = False,
) -> tuple[list[int], list[int]]:
    """Token ids of a conversation up to its last answer's end of turn, and the mask of what the model generates.

    Returns:
        ids and mask, of equal length; the mask is 1 on the tokens of assistant answers (tool calls and end-of-turn
        token included) and 0 elsewhere. An answer with ``"weight": 0`` (OpenAI's field) is context, not a target.
        Messages after the last answer are left out.

    Raises:
        UserError: no assistant message, no chat template, or a template whose answers do not continue its generation
            prompt (reasoning in a message while `enable_thinking` is False, for example).
    """
    turns = [i for i, message in enumerate(messages) if message["role"] == "assistant"]
    if not turns:
        raise UserError("messages: no assistant message to train on")
    ids = _encode(tokenizer, _render(tokenizer, messages[: turns[0]], tools, True, enable_thinking))
    mask = [0] * len(ids)
    stop = end_of_turn(tokenizer)
    for position, turn in enumerate(turns):
        if position:
            glue = _glue(tokenizer, messages[turns[position - 1] + 1 : turn], enable_thinking)[1:]
            ids += glue
            mask += [0] * len(glue)
        answer = _answer(tokenizer, messages[turn], turn, stop, enable_thinking)
        ids += answer
        mask += [int(messages[turn].get("weight", 1) != 0)] * len(answer)
    return ids, mask


def extend_prompt(
    tokenizer: PreTrainedTokenizerBase,
    prompt_ids: Sequence[int],
    response_ids: Sequence[int],
    new_messages: Sequence[Message],
    enable_thinking: bool = False,
) -> list[int]:
    """The next turn's prompt: the ids so far, verbatim, then `new_messages` and the generation prompt.

    An answer that was cut off gets the end-of-turn token that it lacks.
    """
    glue = _glue(tokenizer, new_messages, enable_thinking)
    ended = len(response_ids) > 0 and response_ids[-1] == glue[0]
    return [*prompt_ids, *response_ids, *(glue[1:] if ended else glue)]


def end_of_turn(tokenizer: PreTrainedTokenizerBase) -> int:
    """Id of the token that ends an answer in the tokenizer's chat template."""
    return _glue(tokenizer, [{"role": "user", "content": _PROBE[::-1]}], False)[0]


def _answer(tokenizer: Any, message: Message, index: int, stop: int, enable_thinking: bool) -> list[int]:
    """What the model generates for an assistant message, end-of-turn token included."""
    before = _render(tokenizer, _OPENING, None, True, enable_thinking)
    after = _render(tokenizer, [*_OPENING, message], None, False, enable_thinking)
    if not after.startswith(before):
        raise UserError(
            f"messages[{index}]: the chat template does not continue its generation prompt with this answer; "
            "use enable_thinking for answers with reasoning"
        )
    ids = _encode(tokenizer, after[len(before) :])
    if stop not in ids:
        raise UserError(f"messages[{index}]: the chat template does not end this answer with an end-of-turn token")
    return ids[: len(ids) - ids[::-1].index(stop)]


def _glue(tokenizer: Any, messages: Sequence[Message], enable_thinking: bool) -> list[int]:
    """End-of-turn token of an answer, then everything up to the start of the next one."""
    conversation = [*_OPENING, {"role": "assistant", "content": _PROBE}, *messages]
    text = _render(tokenizer, conversation, None, True, enable_thinking)
    ids = _encode(tokenizer, text.partition(_PROBE)[2])
    known = set(tokenizer.all_special_ids) | set(tokenizer.added_tokens_decoder)
    start = next((position for position, token in enumerate(ids) if token in known), None)
    if start is None:
        raise UserError("chat template: answers do not end with a special token; use a model with an end-of-turn token")
    return ids[start:]


def _render(
    tokenizer: Any,
    messages: Sequence[Message],
    tools: Sequence[ToolSchema] | None,
    add_generation_prompt: bool,
    enable_thinking: bool,
) -> str:
    if not tokenizer.chat_template:
        raise UserError(f"{tokenizer.name_or_path or 'tokenizer'}: no chat template; use an instruction-tuned model")
    template = tokenizer.get_chat_template(tools=list(tools) if tools else None)
    conversation = list(messages)
    if "tool_calls" not in template:
        conversation = [calls_as_text(message) for message in conversation]
    if tools and "tools" not in template:
        conversation, tools = tools_as_text(conversation, tools), None
    try:
        return tokenizer.apply_chat_template(
            conversation,
            tools=list(tools) if tools else None,
            add_generation_prompt=add_generation_prompt,
            enable_thinking=enable_thinking,
            tokenize=False,
        )
    except Exception as error:  # jinja's errors have no common base with what templates raise
        raise UserError(f"chat template: refuses the conversation: {str(error).splitlines()[0]}") from error


def _encode(tokenizer: Any, text: str) -> list[int]:
    return tokenizer.encode(text, add_special_tokens=False)
