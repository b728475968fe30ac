"""Policy prompts and code extraction."""

import pytest

from davinci_kernel.agents import (
    SKILLS_FOOTER,
    SKILLS_HEADER,
    extract_code,
    feedback_message,
    policy_answer,
    policy_messages,
)
from davinci_kernel.skills import Skill
from davinci_kernel.tasks import Task

MODULE = "import torch\n\n\nclass ModelNew(torch.nn.Module):\n    pass\n"
TASK = Task("t/1", "import torch\nclass Model: ...\n")


def test_prompt_without_skills_has_no_skill_lines():
    system, user = policy_messages(TASK, [], "cpp")
    assert (system["role"], user["role"]) == ("system", "user")
    assert SKILLS_HEADER not in system["content"]
    assert "from davinci_kernel.jit import load_cpp" in system["content"]
    assert len(system["content"].splitlines()) <= 8
    assert user["content"].endswith("```python\nimport torch\nclass Model: ...\n```")


def test_skills_are_appended_to_the_system_message_in_full_and_in_order():
    skills = [Skill(name=n, description=f"d-{n}", content=f"## Key Idea\nbody-{n}") for n in ("one", "two")]
    plain = policy_messages(TASK, [], "cpp")[0]["content"]
    system = policy_messages(TASK, skills, "cpp")[0]["content"]
    assert system.startswith(plain)
    expected = "# one\nd-one\n## Key Idea\nbody-one\n# two\nd-two\n## Key Idea\nbody-two"
    assert system.removeprefix(plain).strip() == f"{SKILLS_HEADER}\n{expected}\n{SKILLS_FOOTER}"


@pytest.mark.parametrize(
    ("backend", "needle"), [("cpp", "load_cpp"), ("triton", "import triton"), ("cuda", "load_inline")]
)
def test_backends_name_their_own_tools(backend, needle):
    assert needle in policy_messages(TASK, [], backend)[0]["content"]


def test_entry_point_names_the_class_to_write():
    task = Task("t/2", "class Net: ...", entry_point="Net")
    assert "NetNew" in policy_messages(task, [], "cpp")[0]["content"]


def test_prompts_of_two_tasks_differ_only_in_the_code_lines():
    one, two = (policy_messages(Task("t", code), [], "cpp") for code in ("a = 1", "a = 2"))
    assert one[0] == two[0]
    lines = zip(one[1]["content"].splitlines(), two[1]["content"].splitlines(), strict=True)
    assert [pair for pair in lines if pair[0] != pair[1]] == [("a = 1", "a = 2")]


def test_feedback_counts_attempts_from_one_and_asks_for_more():
    message = feedback_message("CORRECT, speedup 1.4\n", 0)
    assert message["role"] == "user"
    assert message["content"].splitlines()[:2] == ["Result of attempt 1:", "CORRECT, speedup 1.4"]
    assert "Improve" in message["content"]


def test_policy_answer_is_read_back():
    assert extract_code(policy_answer(MODULE)["content"]) == MODULE
    assert extract_code(policy_answer(MODULE, think="```python\nclass ModelNew: 1\n```")["content"]) == MODULE


def test_last_module_that_defines_the_class_wins():
    text = (
        "```python\nclass ModelNew:\n    a = 1\n```\nbetter:\n```python\nclass ModelNew:\n    a = 2\n```\n"
        "usage:\n```python\nm = ModelNew()\n```\n```cpp\nint x;\n```"
    )
    assert extract_code(text) == "class ModelNew:\n    a = 2\n"


def test_without_the_class_the_last_fence_is_taken():
    assert extract_code("```python\na = 1\n```\n```cpp\nint x;\n```\nbye") == "int x;\n"
    assert extract_code("```python\nclass ModelNewer: ...\n```\n```\nb\n```") == "b\n"


def test_entry_point_of_the_class():
    text = "```python\nclass NetNew: ...\n```\n```python\nclass ModelNew: ...\n```"
    assert extract_code(text, "Net") == "class NetNew: ...\n"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "class ModelNew: ...",
        "```python\nclass ModelNew: ...",  # cut off
        "<think>```python\nclass ModelNew: ...\n```\n",  # still thinking
        "<think>\n```python\nclass ModelNew: ...\n```\n</think>\nI give up",
        "```python\nclass ModelNew: ...\n```\n</think>\nthe template opened the block",
    ],
)
def test_no_module(text):
    assert extract_code(text) is None


def test_inline_backticks_in_code_do_not_close_the_fence():
    body = 'K = """// ``` not at the line start\n"""\nclass ModelNew: ...\n'
    assert extract_code(f"```python\n{body}```") == body
