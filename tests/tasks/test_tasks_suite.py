"""The built-in suite: every problem runs, is finite, grows with the size factor and depends on its inputs."""

from collections import Counter

import pytest
import torch

from davinci_kernel.errors import UserError
from davinci_kernel.tasks import Task, load_suite, require_reference

SUITE = load_suite()
DOUBLED = {task.task_id: task for task in load_suite(size=2)}


def run(task: Task, seed: int = 0) -> tuple[torch.nn.Module, list[torch.Tensor], list[torch.Tensor]]:
    namespace: dict = {"__name__": "reference"}
    exec(compile(task.code, task.task_id, "exec"), namespace)
    torch.manual_seed(0)
    model = namespace["Model"](*namespace["get_init_inputs"]())
    torch.manual_seed(seed)
    inputs = namespace["get_inputs"]()
    return model, inputs, outputs(model, inputs)


@torch.no_grad()
def outputs(model: torch.nn.Module, inputs: list[torch.Tensor]) -> list[torch.Tensor]:
    result = model(*inputs)
    return list(result) if isinstance(result, tuple) else [result]


def test_there_are_enough_problems_in_three_levels():
    counts = Counter(task.level for task in SUITE)
    assert set(counts) == {1, 2, 3}
    assert min(counts.values()) >= 12
    assert len(SUITE) >= 40
    assert len({task.task_id for task in SUITE}) == len(SUITE) == len({task.code for task in SUITE})
    assert {task.level for task in load_suite(levels=[3])} == {3}


@pytest.mark.parametrize("task", SUITE, ids=lambda task: task.task_id)
def test_problem(task):
    require_reference(task.code, task.task_id)
    model, inputs, first = run(task)
    assert all(torch.isfinite(tensor).all() for tensor in first if tensor.is_floating_point())
    assert all(tensor.double().std() > 1e-3 for tensor in first)
    for again, once in zip(outputs(model, inputs), first, strict=True):
        torch.testing.assert_close(again, once, rtol=0, atol=0)
    others = run(task, seed=1)[1]
    for position, other in enumerate(others):
        changed = outputs(model, [other if i == position else x for i, x in enumerate(inputs)])
        assert any(not torch.equal(a, b) for a, b in zip(changed, first, strict=True)), position
    grown_inputs, grown = run(DOUBLED[task.task_id])[1:]
    assert sum(x.numel() for x in grown_inputs) > sum(x.numel() for x in inputs)
    assert [t.shape for t in grown] != [t.shape for t in first] or "decode" in task.task_id


def test_only_marked_constants_scale():
    small, large = (load_suite([1], size)[SUITE_MATMUL].code for size in (0.5, 3))
    assert "M = 64\nK = 256\nN = 256" in small
    assert "M = 384\nK = 256\nN = 256" in large


SUITE_MATMUL = [task.name for task in load_suite([1])].index("matmul")


def test_a_tiny_size_leaves_one_row():
    assert "ROWS = 1\n" in next(t.code for t in load_suite([1], 1e-4) if t.name == "gelu")


@pytest.mark.parametrize("size", [0, -1, float("nan"), float("inf")])
def test_bad_sizes(size):
    with pytest.raises(UserError, match="expected a positive factor"):
        load_suite(size=size)


def test_attention_is_what_the_paper_says():
    """softmax(q k^T / sqrt(d)) v of PyTorch's own fused kernel."""
    for name, causal in (("attention", False), ("causal_attention", True)):
        task = next(t for t in SUITE if t.name == name)
        _, (q, k, v), (output,) = run(task)
        expected = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
        torch.testing.assert_close(output, expected)
