import copy
import json

import pytest

from davinci_kernel.errors import UserError
from davinci_kernel.llm import SMALL_CHAT_TEMPLATE, end_of_turn, extend_prompt, render_prompt, render_with_mask

CHATML = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\\n' + m['content'] + '<|im_end|>\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
# Reasoning only in the last answer, and an empty block in front of an answer without it, as Qwen3 does.
FORGETFUL = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\\n' }}"
    "{% if m['role'] == 'assistant' and '</think>' in m['content'] and not loop.last %}"
    "{{ m['content'].split('</think>')[-1].lstrip('\\n') }}"
    "{% elif m['role'] == 'assistant' and '</think>' not in m['content'] and loop.last %}"
    "{{ '<think>\\n\\n</think>\\n\\n' + m['content'] }}{% else %}{{ m['content'] }}{% endif %}"
    "{{ '<|im_end|>\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}"
    "{% if not enable_thinking %}{{ '<think>\\n\\n</think>\\n\\n' }}{% endif %}{% endif %}"
)
TOOL = {"type": "function", "function": {"name": "pick", "description": "d", "parameters": {"type": "object"}}}
ARGUMENTS = {"think": 'a "b"\nc', "names": ["x"]}
CALL = {"role": "assistant", "content": "", "tool_calls": [{"type": "function", "function": {"name": "pick", "arguments": ARGUMENTS}}]}  # fmt: skip
TALK = [
    {"role": "system", "content": "Write kernels."},
    {"role": "user", "content": "Scale by 1.35\n"},
    {"role": "assistant", "content": "\n\nx * 1.35\n"},
    {"role": "user", "content": "7 faster"},
    {"role": "assistant", "content": "x * 2"},
]
ROUND_1 = "<|im_start|>system\nWrite kernels.<|im_end|>\n<|im_start|>user\nScale by 1.35\n<|im_end|>\n"


@pytest.fixture(params=[SMALL_CHAT_TEMPLATE, CHATML], ids=["small", "without tools"])
def any_tokenizer(request, tokenizer):
    return with_template(tokenizer, request.param)


def with_template(tokenizer, template):
    changed = copy.deepcopy(tokenizer)
    changed.chat_template = template
    return changed


def masked(tokenizer, ids, mask):
    return tokenizer.decode([token for token, kept in zip(ids, mask, strict=True) if kept])


def test_render_prompt_is_chatml(any_tokenizer):
    text = any_tokenizer.decode(render_prompt(any_tokenizer, TALK[:2]))
    assert text == ROUND_1 + "<|im_start|>assistant\n"
    plain = any_tokenizer.decode(render_prompt(any_tokenizer, TALK[:2], add_generation_prompt=False))
    assert plain == ROUND_1


def test_mask_is_what_the_model_generates(any_tokenizer):
    ids, mask = render_with_mask(any_tokenizer, TALK)
    assert any_tokenizer.decode(ids) == (
        ROUND_1 + "<|im_start|>assistant\n\n\nx * 1.35\n<|im_end|>\n"
        "<|im_start|>user\n7 faster<|im_end|>\n<|im_start|>assistant\nx * 2<|im_end|>"
    )
    assert masked(any_tokenizer, ids, mask) == "\n\nx * 1.35\n<|im_end|>x * 2<|im_end|>"


def test_an_answer_of_weight_0_is_context_only(any_tokenizer):
    weighed = [TALK[0], TALK[1], TALK[2] | {"weight": 0}, *TALK[3:]]
    ids, mask = render_with_mask(any_tokenizer, weighed)
    assert ids == render_with_mask(any_tokenizer, TALK)[0]
    assert masked(any_tokenizer, ids, mask) == "x * 2<|im_end|>"


def test_prompts_and_answers_are_prefixes_of_the_training_row(any_tokenizer):
    ids, mask = render_with_mask(any_tokenizer, TALK)
    first = render_prompt(any_tokenizer, TALK[:2])
    assert ids[: len(first)] == first
    assert mask[: len(first)] == [0] * len(first)
    second = render_prompt(any_tokenizer, TALK[:4])
    assert ids[: len(second)] == second
    assert all(mask[len(second) :])
    answer = ids[len(first) : mask.index(0, len(first))]
    assert extend_prompt(any_tokenizer, first, answer, TALK[3:4]) == second


def test_extend_keeps_sampled_ids_and_ends_a_cut_answer(any_tokenizer):
    """Letters one by one are no tokenisation that the tokenizer would choose for a whole line."""
    sampled = [any_tokenizer.convert_tokens_to_ids(letter) for letter in "import"]
    assert any_tokenizer.encode("import") != sampled
    first, stop = render_prompt(any_tokenizer, TALK[:2]), end_of_turn(any_tokenizer)
    whole = extend_prompt(any_tokenizer, first, [*sampled, stop], TALK[3:4])
    assert whole[: len(first) + 7] == [*first, *sampled, stop]
    tail = any_tokenizer.decode(whole[len(first) + 7 :])
    assert tail == "\n<|im_start|>user\n7 faster<|im_end|>\n<|im_start|>assistant\n"
    assert extend_prompt(any_tokenizer, first, sampled, TALK[3:4]) == whole


def test_tools_and_calls_are_hermes_text(any_tokenizer):
    ids, mask = render_with_mask(any_tokenizer, [*TALK[:2], CALL], [TOOL])
    head, _, rest = any_tokenizer.decode(ids).partition("<tools>\n")
    schema, _, after = rest.partition("\n</tools>")
    assert head.startswith("<|im_start|>system\nWrite kernels.\n\n# Tools\n")
    assert json.loads(schema) == TOOL
    assert "\n" not in schema
    assert after.startswith("<|im_end|>\n<|im_start|>user\nScale")
    generated = masked(any_tokenizer, ids, mask)
    assert generated.startswith("<tool_call>\n")
    assert generated.endswith("\n</tool_call><|im_end|>")
    call = json.loads(generated.removeprefix("<tool_call>\n").removesuffix("\n</tool_call><|im_end|>"))
    assert call == {"name": "pick", "arguments": ARGUMENTS}
    prompt = render_prompt(any_tokenizer, TALK[:2], [TOOL])
    assert ids[: len(prompt)] == prompt


def test_both_templates_write_the_same_text(tokenizer):
    both = [with_template(tokenizer, t) for t in (SMALL_CHAT_TEMPLATE, CHATML)]
    tool_turn = [{"role": "tool", "content": "ok"}]
    with_text = {**CALL, "content": "Let me see.", "tool_calls": CALL["tool_calls"] * 2}
    for talk in ([*TALK[:2], CALL, *tool_turn, with_text], [*TALK[1:2], CALL]):
        rows = [render_with_mask(t, talk, [TOOL]) for t in both]
        assert rows[0] == rows[1]
        assert "Let me see.\n<tool_call>\n" in tokenizer.decode(rows[0][0]) or len(talk) == 2
    without_system = tokenizer.decode(render_prompt(both[0], TALK[1:2], [TOOL]))
    assert without_system.startswith("<|im_start|>system\n# Tools\n")


def test_a_template_that_strips_reasoning_keeps_what_was_generated(tokenizer):
    forgetful = with_template(tokenizer, FORGETFUL)
    ids, mask = render_with_mask(forgetful, TALK)
    assert masked(forgetful, ids, mask) == "\n\nx * 1.35\n<|im_end|>x * 2<|im_end|>"
    assert forgetful.decode(ids).count("<think>\n\n</think>\n\n") == 2
    second = render_prompt(forgetful, TALK[:4])
    assert ids[: len(second)] == second


def test_reasoning_needs_enable_thinking_where_the_template_says_so(tokenizer):
    forgetful = with_template(tokenizer, FORGETFUL)
    thinking = [TALK[1], {"role": "assistant", "content": "<think>\nhm\n</think>\n\nx"}]
    with pytest.raises(UserError, match=r"messages\[1\]: .*enable_thinking"):
        render_with_mask(forgetful, thinking)
    ids, mask = render_with_mask(forgetful, thinking, enable_thinking=True)
    assert masked(forgetful, ids, mask) == "<think>\nhm\n</think>\n\nx<|im_end|>"


def test_what_cannot_be_rendered(tokenizer):
    with pytest.raises(UserError, match="no assistant message"):
        render_with_mask(tokenizer, TALK[:2])
    with pytest.raises(UserError, match="no chat template"):
        render_prompt(with_template(tokenizer, None), TALK[:2])
    picky = with_template(tokenizer, "{{ raise_exception('roles must alternate') }}")
    with pytest.raises(UserError, match="roles must alternate"):
        render_prompt(picky, TALK[:2])
