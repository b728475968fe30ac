"""Summary prompts, and which proposals get through."""

import json

import pytest

from davinci_kernel.agents import parse_summary, summary_answer, summary_messages
from davinci_kernel.llm import Completion
from davinci_kernel.skills import Skill
from davinci_kernel.tasks import Task

BODY = "## Motivation\nMemory is slow.\n## Key Idea\nFuse the passes.\n## Example\n```cpp\nfloat v = a[c];\n```"
GOOD = {
    "name": "fuse-passes",
    "description": "One pass over memory.",
    "scope": "general",
    "tags": ["fusion", "memory", "cache"],
    "content": BODY,
}


def propose(*skills, think="t"):
    call = {"name": "update_skill_library", "arguments": {"think": think, "new_skills": list(skills)}}
    return Completion(text=f"<tool_call>\n{json.dumps(call)}\n</tool_call>")


def parse(*skills, limit=2):
    return parse_summary(propose(*skills), limit, lambda text: len(text.split()))


def reason_for(**changes):
    summary = parse({**GOOD, **changes})
    assert summary.parsed
    assert summary.skills == ()
    return summary.rejected[0][1]


def test_messages_hold_both_codes_their_speedups_and_the_skills_had():
    messages = summary_messages(Task("t", "TASK"), [Skill(name="had", content="BODY")], "FIRST", 1.0, "BEST", 2.5)
    content = messages[1]["content"]
    lines = content.splitlines()
    assert [line for line in lines if line in ("TASK", "FIRST", "BEST")] == ["TASK", "FIRST", "BEST"]
    assert "speedup 1.00" in lines
    assert "speedup 2.50" in lines
    assert any(line.startswith("had [general]") for line in lines)
    assert "BODY" not in content


def test_a_good_skill_passes():
    summary = parse(GOOD)
    expected = Skill(
        name="fuse-passes",
        description="One pass over memory.",
        tags=("fusion", "memory", "cache"),
        content=BODY,
    )
    assert summary.skills == (expected,)
    assert (summary.think, summary.parsed, summary.rejected) == ("t", True, ())


def test_qwen_xml_summary():
    text = (
        "<tool_call>\n<function=update_skill_library>\n<parameter=think>\nt\n</parameter>\n<parameter=new_skills>\n"
        f"{json.dumps([GOOD], indent=1)}\n</parameter>\n</function>\n</tool_call>"
    )
    assert parse_summary(Completion(text=text), 2, len, 1000).skills[0].name == "fuse-passes"


@pytest.mark.parametrize(
    "text",
    [
        "no call",
        '<tool_call>{"name": "update_skill_library", "arguments": {"think": "t", "new_skills": {}}}</tool_call>',
        '<tool_call>{"name": "update_skill_library", "arguments": {"new_skills": []}}</tool_call>',
    ],
)
def test_unusable_calls_are_not_parsed(text):
    assert not parse_summary(Completion(text=text), 2, len).parsed


def test_half_a_surrogate_pair_makes_a_call_unreadable():
    completion = propose({**GOOD, "content": BODY + "\ud83d"})
    assert "\\ud83d" in completion.text  # spelled as an escape: the answer itself is plain text
    assert not parse_summary(completion, 2, len, 1000).parsed
    assert parse_summary(propose({**GOOD, "content": BODY + "\U0001f600"}), 2, len, 1000).skills


def test_more_than_the_limit_is_rejected():
    summary = parse(*({**GOOD, "name": name} for name in ("a", "b", "c")))
    assert [skill.name for skill in summary.skills] == ["a", "b"]
    assert summary.rejected == (("c", "more than 2 skills"),)


def test_one_bad_proposal_leaves_the_other():
    summary = parse("not an object", GOOD)
    assert [skill.name for skill in summary.skills] == ["fuse-passes"]
    assert summary.rejected[0][0] == "skill 1"


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"name": ""}, "name"),
        ({"name": "two\nlines"}, "name"),
        ({"name": "x" * 81}, "name"),
        ({"name": 7}, "name"),
        ({"description": "  "}, "description"),
        ({"scope": "task"}, "scope"),
        ({"scope": "task_specific/"}, "scope"),
        ({"tags": ["a", "b"]}, "tags"),
        ({"tags": list("abcdefg")}, "tags"),
        ({"tags": ["a", "b", " "]}, "tags"),
        ({"tags": "a, b, c"}, "tags"),
        ({"content": BODY.replace("## Key Idea", "Key Idea")}, "content: no section ## Key Idea"),
        ({"content": BODY.replace("## Example", "### Example")}, "content: no section ## Example"),
        ({"content": None}, "content"),
    ],
)
def test_fields_are_checked(changes, field):
    assert reason_for(**changes).startswith(field)


@pytest.mark.parametrize("scope", ["general", "task_specific/softmax", "task_specific/matrix-product"])
def test_scopes(scope):
    assert parse({**GOOD, "scope": scope}).skills[0].scope == scope


def test_the_token_limit_is_inclusive():
    words = len(BODY.split())
    filled = BODY + " w" * (512 - words)
    assert parse({**GOOD, "content": filled}).skills
    assert reason_for(content=filled + " w") == "content: 513 tokens, at most 512"


@pytest.mark.parametrize(
    "advice",
    [
        "Use torch.compile for this.",
        "Wrap the model: model = torch.compile(model)",
        "Fall back to PyTorch for small inputs.",
        "For large sizes, fall back on the vendor library.",
        "Call torch.matmul directly.",
        "Use cuBLAS for the product.",
        "Delegate the product to MKL.",
        "Rely on the eager implementation.",
        "Prefer PyTorch's built-in softmax.",
        "Avoid custom kernels here.",
        "Do not write a kernel.",
        "There is no need to write a custom kernel for small tensors.",
        "Return the original module.",
        "No kernel beats it, so use cuBLAS.",
    ],
)
def test_advice_against_kernels_is_rejected(advice):
    assert "content" not in reason_for(content=BODY.replace("Fuse the passes.", advice))


@pytest.mark.parametrize(
    "advice",
    [
        "This beats torch.compile by 20 %.",
        "Do not fall back to PyTorch.",
        "Never call torch.matmul.",
        "Write the loop yourself instead of calling cuBLAS.",
        "Avoid kernel launches between the steps.",
        "Avoid a kernel per operator; fuse them.",
        "Do not write a separate kernel for each operator.",
        "Avoid kernels that spill registers.",
        "Use torch.empty_like for the output.",
        "Use built-in vector types.",
        "Use shared memory to rely less on bandwidth.",
    ],
)
def test_advice_about_kernels_passes(advice):
    assert parse({**GOOD, "content": BODY.replace("Fuse the passes.", advice)}).rejected == ()


def test_answer_is_the_inverse_of_parsing():
    skill = parse(GOOD).skills[0]
    function = summary_answer("why", [skill])["tool_calls"][0]["function"]
    text = f"<tool_call>\n{json.dumps(function)}\n</tool_call>"
    summary = parse_summary(Completion(text=text), 2, lambda text: 1)
    assert (summary.skills, summary.think) == ((skill,), "why")
