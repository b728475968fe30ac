"""The teacher's kernels compute what PyTorch computes, at every optimisation level."""

import itertools

import pytest
import torch

from davinci_kernel.sft import Plan, supports, write_kernel
from davinci_kernel.tasks import OPERATORS, GeneratorSpec, Task, generate_task

ALL_PLANS = [Plan(*flags) for flags in itertools.product([False, True], repeat=5)]


def run(code: str, name: str, inputs: list[torch.Tensor]) -> torch.Tensor:
    namespace: dict = {"__name__": "candidate"}
    exec(compile(code, "<candidate>", "exec"), namespace)
    return namespace[name]()(*inputs)


def check(task: Task, plan: Plan) -> None:
    namespace: dict = {"__name__": "reference"}
    exec(compile(task.code, "<reference>", "exec"), namespace)
    torch.manual_seed(0)
    inputs = namespace["get_inputs"]()
    expected = namespace["Model"]()(*inputs)
    actual = run(write_kernel(task, plan), "ModelNew", inputs)
    torch.testing.assert_close(actual, expected, rtol=2e-4, atol=2e-5, msg=lambda m: f"{plan}\n{task.code}\n{m}")


@pytest.mark.parametrize("operator", sorted(OPERATORS))
def test_every_operator_in_the_slowest_and_the_fastest_plan(operator):
    tail = OPERATORS[operator].kind in ("reduction", "normalisation")
    spec = GeneratorSpec(
        min_ops=4,
        max_ops=4,
        operators=("mul",) if tail else (operator, "mul"),
        tails=(operator,) if tail else (),
        tail_probability=1.0 if tail else 0.0,
        shapes=((7, 33),),
    )
    tasks = (generate_task(0, index, "train", spec) for index in range(20))
    task = next(t for t in tasks if operator in [step["op"] for step in t.metadata["steps"]])
    for plan in (Plan(), Plan(True, True, True, True, True)):
        check(task, plan)


@pytest.mark.parametrize("plan", ALL_PLANS, ids=str)
def test_every_plan_on_a_chain_with_a_normalisation(plan):
    spec = GeneratorSpec(min_ops=3, max_ops=4, tails=("softmax",), tail_probability=1.0, shapes=((5, 40),))
    check(generate_task(1, 3, "train", spec), plan)


def test_plans_differ_where_they_should():
    spec = GeneratorSpec(min_ops=2, max_ops=2, operators=("sigmoid", "mul"), tails=())
    tasks = (generate_task(0, index, "train", spec) for index in range(20))
    task = next(t for t in tasks if [step["op"] for step in t.metadata["steps"]] == ["sigmoid", "mul"])
    code = {
        name: write_kernel(task, Plan(**{name: True})) for name in ("parallel", "fused", "single", "fast_math", "wide")
    }
    assert "#pragma omp parallel for" in code["parallel"]
    assert "#pragma" not in code["fused"]
    assert code["fused"].count("for (long r") == 1
    assert code["parallel"].count("for (long r") == 2
    assert "expf(" in code["single"]
    assert "double" not in code["single"]
    assert "double v" in code["fused"]
    assert code["fast_math"].count('["-ffast-math"]') == 1
    assert code["wide"].count('["-mprefer-vector-width=512"]') == 1


def test_foreign_tasks_are_refused():
    task = Task("mine", "class Model: ...")
    assert not supports(task)
    with pytest.raises(ValueError, match="mine: the procedural teacher writes kernels for generated tasks only"):
        write_kernel(task, Plan())
