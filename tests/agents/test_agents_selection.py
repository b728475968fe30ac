"""Selection prompts, and tool calls in every form that models write."""

import json

import pytest

from davinci_kernel.agents import SELECT_SKILLS, parse_selection, selection_answer, selection_messages
from davinci_kernel.llm import Completion
from davinci_kernel.skills import Skill
from davinci_kernel.tasks import Task

OFFERED = [
    Skill(name="openmp_parallel-rows", description="threads", tags=("a", "b", "c"), content="SECRET BODY"),
    Skill(name="fuse-chain", scope="task_specific/softmax", description="one pass"),
    Skill(name="float/arithmetic"),
    Skill(name="fast math"),
]
ARGUMENTS = {"think": "why", "selected_skills": [{"name": "fuse-chain", "reason": "many ops"}]}
CALL = json.dumps({"name": "select_skills", "arguments": ARGUMENTS})
XML = (
    "<tool_call>\n<function=select_skills>\n<parameter=think>\nwhy\n</parameter>\n<parameter=selected_skills>\n"
    + json.dumps(ARGUMENTS["selected_skills"])
    + "\n</parameter>\n</function>\n</tool_call>"
)


def parse(text, limit=3):
    return parse_selection(Completion(text=text), OFFERED, limit)


def choose(*names):
    skills = [{"name": name, "reason": "r"} for name in names]
    arguments = {"think": "", "selected_skills": skills}
    return f"<tool_call>{json.dumps({'name': 'select_skills', 'arguments': arguments})}</tool_call>"


def test_messages_number_the_headers_and_hide_the_bodies():
    content = selection_messages(Task("t", "x" * 50), OFFERED, task_chars=20)[1]["content"]
    assert "```python\n" + "x" * 20 + "\n```" in content
    assert "1. openmp_parallel-rows [general] (a, b, c): threads" in content
    assert "2. fuse-chain [task_specific/softmax] (): one pass" in content
    assert "SECRET BODY" not in content


@pytest.mark.parametrize(
    "text",
    [
        f"<tool_call>\n{CALL}\n</tool_call>",
        f"<tool_call>{CALL}",
        f"Sure.\n<tool_call>\n{CALL} and so on\n</tool_call> trailing",
        f"<think>hm <tool_call>nonsense</think>\n<tool_call>\n{CALL}\n</tool_call>",
        f"thoughts\n</think>\n<tool_call>\n{CALL}\n</tool_call>",
        XML,
        XML.removeprefix("<tool_call>\n"),
        f"Here:\n```json\n{CALL}\n```\n",
        f"<tool_call>{json.dumps({'name': 'select_skills', 'arguments': json.dumps(ARGUMENTS)})}</tool_call>",
        f"<tool_call>{json.dumps({'name': 'other_tool', 'arguments': {}})}</tool_call><tool_call>{CALL}</tool_call>",
    ],
)
def test_forms_of_a_call(text):
    selection = parse(text)
    assert (selection.names, selection.think, selection.parsed) == (("fuse-chain",), "why", True)


@pytest.mark.parametrize("arguments", [ARGUMENTS, json.dumps(ARGUMENTS)])
@pytest.mark.parametrize("nested", [True, False])
def test_calls_parsed_by_a_server(arguments, nested):
    call = {"name": "select_skills", "arguments": arguments}
    completion = Completion(text="", tool_calls=({"type": "function", "function": call} if nested else call,))
    assert parse_selection(completion, OFFERED, 3).names == ("fuse-chain",)


def test_raw_newlines_in_json_strings_are_read():
    text = '<tool_call>{"name": "select_skills", "arguments": {"think": "a\nb", "selected_skills": []}}</tool_call>'
    assert parse(text).think == "a\nb"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "fuse-chain",
        "<tool_call>{broken</tool_call>",
        f"<think><tool_call>{CALL}</tool_call>",
        '<tool_call>{"name": "select_skills"}</tool_call>',
        '<tool_call>{"name": "select_skills", "arguments": []}</tool_call>',
        '<tool_call>{"name": "select_skills", "arguments": "{broken"}</tool_call>',
        '<tool_call>{"name": "select_skills", "arguments": {"selected_skills": []}}</tool_call>',
        '<tool_call>{"name": "select_skills", "arguments": {"think": 3, "selected_skills": []}}</tool_call>',
        '<tool_call>{"name": "select_skills", "arguments": {"think": "", "selected_skills": ["fuse-chain"]}}</tool_call>',
        '<tool_call>{"name": "select_skills", "arguments": {"think": "", "selected_skills": [{"name": "x"}]}}</tool_call>',
        '<tool_call>{"name": "pick", "arguments": {"think": "", "selected_skills": []}}</tool_call>',
        XML.replace("[{", "{"),
        '<tool_call>{"a":' * 5000,
        "<tool_call>" + '{"a":' * 200_000,
        '<tool_call>{"name": "select_skills", "arguments": {"think": ' + "9" * 5000 + "}}</tool_call>",
        "</think>" * 3000,
    ],
)
def test_unusable_calls_are_not_parsed(text):
    selection = parse(text)
    assert (selection.names, selection.parsed) == ((), False)


def test_an_empty_choice_is_a_choice():
    selection = parse(choose())
    assert (selection.names, selection.parsed) == ((), True)


def test_names_match_whatever_case_and_separators():
    assert parse(choose("OpenMP parallel_rows", "Float-Arithmetic")).names == (
        "openmp_parallel-rows",
        "float/arithmetic",
    )


def test_names_must_match_in_full():
    assert parse(choose("fuse", "fuse-chain-2", "fusechain")).names == ()


def test_unknown_and_duplicate_names_do_not_use_up_the_limit():
    names = ("nope", "fuse-chain", "Fuse Chain", "fast math", "float/arithmetic")
    assert parse(choose(*names), limit=2).names == ("fuse-chain", "fast math")


def test_an_exact_name_wins_over_one_that_only_resembles_it():
    offered = [Skill(name="a-b"), Skill(name="a_b")]
    assert parse_selection(Completion(text=choose("a_b")), offered, 3).names == ("a_b",)
    assert parse_selection(Completion(text=choose("A B")), offered, 3).names == ("a-b",)


def test_answer_is_the_inverse_of_parsing():
    message = selection_answer("why", [("fuse-chain", "r"), ("fast math", "s")])
    function = message["tool_calls"][0]["function"]
    assert message["role"] == "assistant"
    assert function["name"] == SELECT_SKILLS["function"]["name"]
    assert isinstance(function["arguments"], dict)
    completion = Completion(text=f"<tool_call>\n{json.dumps(function)}\n</tool_call>")
    selection = parse_selection(completion, OFFERED, 3)
    assert (selection.names, selection.think) == (("fuse-chain", "fast math"), "why")
