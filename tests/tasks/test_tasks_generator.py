"""Generated tasks: reproducible, split without overlap, and worth measuring."""

import ast
import json
import math

import pytest
import torch

from davinci_kernel.errors import UserError
from davinci_kernel.tasks import OPERATORS, GeneratorSpec, Operator, Task, generate_task, with_constants

SMALL = GeneratorSpec(shapes=((6, 40), (12, 33)))
TAIL_KINDS = ("reduction", "normalisation")
KNOWN = [["sigmoid", "mul", "softmax"], ["mul", "sigmoid", "softmax"], ["mul", "mul"], ["mul", "mul"]]


def loaded(task: Task) -> dict:
    namespace: dict = {"__name__": "reference"}
    exec(compile(task.code, task.task_id, "exec"), namespace)
    return namespace


def chain_of(task: Task) -> str:
    return json.dumps(task.metadata["steps"])


def evaluated(operator: Operator, x: torch.Tensor, value: float | None = None, b: torch.Tensor | None = None):
    expression = operator.torch.format(x="x", value=value, b="b")
    return eval(expression, {"torch": torch, "F": torch.nn.functional, "x": x, "b": b})


def test_the_same_arguments_give_the_same_task():
    for index in range(50):
        assert generate_task(7, index, "train", SMALL) == generate_task(7, index, "train", SMALL)


def test_a_known_task_does_not_change_between_releases():
    spec = GeneratorSpec(min_ops=2, max_ops=2, operators=("mul", "sigmoid"), tails=("softmax",), shapes=((8, 8),))
    tasks = [generate_task(0, index, "train", spec) for index in range(4)]
    assert len({task.code for task in tasks}) > 1
    assert [[step["op"] for step in task.metadata["steps"]] for task in tasks] == KNOWN


def test_seed_index_and_split_each_matter():
    tasks = [generate_task(s, i, split, SMALL) for s in (0, 1) for i in (0, 1) for split in ("train", "heldout")]
    assert len({chain_of(task) for task in tasks}) == len(tasks)
    assert [task.task_id for task in tasks[:2]] == ["gen/train/0/0", "gen/heldout/0/0"]


def test_no_chain_is_in_both_splits():
    chains = {
        split: {chain_of(generate_task(seed, index, split, SMALL)) for index in range(2000)}
        for seed, split in ((0, "train"), (1, "heldout"))
    }
    assert min(map(len, chains.values())) > 1500
    assert not chains["train"] & chains["heldout"]


def test_splits_stay_disjoint_where_few_chains_exist():
    spec = GeneratorSpec(min_ops=1, max_ops=2, operators=("mul", "tanh"), tails=())
    chains = {s: {chain_of(generate_task(3, i, s, spec)) for i in range(400)} for s in ("train", "heldout")}
    assert chains["train"]
    assert chains["heldout"]
    assert not chains["train"] & chains["heldout"]


def test_references_are_finite_vary_and_depend_on_every_input():
    for index in range(150):
        task = generate_task(11, index, "train" if index % 2 else "heldout", SMALL)
        module = loaded(task)
        torch.manual_seed(index)
        model, inputs, others = module["Model"](), module["get_inputs"](), module["get_inputs"]()
        output = model(*inputs)
        assert torch.isfinite(output).all(), task.code
        assert output.std() > 0, task.code
        for position, other in enumerate(others):
            changed = model(*[other if i == position else x for i, x in enumerate(inputs)])
            assert not torch.equal(changed, output), (position, task.code)


def test_metadata_tells_the_chain_that_the_code_computes():
    for index in range(60):
        task = generate_task(5, index, "train", SMALL)
        module, meta = loaded(task), task.metadata
        inputs = module["get_inputs"]()
        assert list(inputs[0].shape) == meta["shape"]
        x, extras = inputs[0], iter(inputs[1:])
        for step in meta["steps"]:
            b = next(extras) if "input" in step else None
            x = evaluated(OPERATORS[step["op"]], x, step.get("value"), b)
        torch.testing.assert_close(module["Model"]()(*inputs), x, rtol=0, atol=0)
        assert json.loads(json.dumps(meta)) == meta
        assert (meta["split"], meta["seed"], meta["index"]) == ("train", 5, index)


def test_code_is_one_operator_per_line():
    spec = GeneratorSpec(min_ops=3, max_ops=3, tails=("rmsnorm",), tail_probability=1.0)
    (model,) = (n for n in ast.parse(generate_task(0, 0, "train", spec).code).body if isinstance(n, ast.ClassDef))
    forward = model.body[0]
    assert isinstance(forward, ast.FunctionDef)
    assert [type(s).__name__ for s in forward.body] == ["Assign"] * 4 + ["Return"]


def test_constants_lie_on_the_grid_and_in_range():
    seen = set()
    for index in range(500):
        for step in generate_task(2, index, "train", SMALL).metadata["steps"]:
            if "value" in step:
                low, high = OPERATORS[step["op"]].values
                assert low <= step["value"] <= high
                assert round(step["value"] * 20, 6) == round(step["value"] * 20)
                assert step["value"] not in (0.0, 1.0)
                seen.add(step["op"])
    assert {"mul", "add", "sub", "div", "clamp_min", "clamp_max", "leaky_relu"} <= seen


@pytest.mark.parametrize("name", sorted(OPERATORS))
def test_every_operator_can_be_generated_and_runs(name):
    tail = OPERATORS[name].kind in TAIL_KINDS
    spec = GeneratorSpec(
        min_ops=1,
        max_ops=2,
        operators=("mul",) if tail else (name, "mul"),
        tails=(name,) if tail else (),
        tail_probability=1.0 if tail else 0.0,
        shapes=((5, 17),),
    )
    tasks = (generate_task(0, index, "train", spec) for index in range(50))
    task = next(t for t in tasks if name in [step["op"] for step in t.metadata["steps"]])
    module = loaded(task)
    output = module["Model"]()(*module["get_inputs"]())
    assert output.shape == ((5, 1) if OPERATORS[name].kind == "reduction" else (5, 17))
    assert torch.isfinite(output).all()


POINTWISE = {
    "mul": lambda x: x * 0.75,
    "add": lambda x: x + 0.75,
    "sub": lambda x: x - 0.75,
    "div": lambda x: x / 0.75,
    "clamp_min": lambda x: max(x, 0.75),
    "clamp_max": lambda x: min(x, 0.75),
    "relu": lambda x: max(x, 0.0),
    "leaky_relu": lambda x: x if x > 0 else 0.75 * x,
    "sigmoid": lambda x: 1 / (1 + math.exp(-x)),
    "tanh": math.tanh,
    "silu": lambda x: x / (1 + math.exp(-x)),
    "gelu": lambda x: 0.5 * x * (1 + math.erf(x / math.sqrt(2))),
    "softplus": lambda x: math.log1p(math.exp(x)),
    "abs": abs,
    "square": lambda x: x * x,
    "neg": lambda x: -x,
    "exp_neg_abs": lambda x: math.exp(-abs(x)),
    "sqrt_abs": lambda x: math.sqrt(abs(x) + 0.1),
    "sin": math.sin,
    "cos": math.cos,
    "erf": math.erf,
    "elu": lambda x: x if x > 0 else math.exp(x) - 1,
    "hardswish": lambda x: x * min(max(x + 3, 0), 6) / 6,
}


def test_every_pointwise_operator_has_an_independent_formula():
    assert set(POINTWISE) == {o.name for o in OPERATORS.values() if o.kind in ("elementwise", "scalar")}


@pytest.mark.parametrize("name", sorted(POINTWISE))
def test_pointwise_operators_mean_what_their_names_say(name):
    points = [-4.5, -2.0, -0.3, 0.0, 0.4, 1.7, 5.0]
    actual = evaluated(OPERATORS[name], torch.tensor(points, dtype=torch.float64), 0.75)
    assert actual.tolist() == pytest.approx([POINTWISE[name](x) for x in points], abs=1e-12)


ROW = [1.0, 2.0, 4.0, -3.0]
EXP_SUM = math.e + math.e**2 + math.e**4 + math.e**-3
ROWWISE = {
    "row_sum": [4.0],
    "row_mean": [1.0],
    "row_max": [4.0],
    "row_min": [-3.0],
    "softmax": [math.exp(x) / EXP_SUM for x in ROW],
    "log_softmax": [x - math.log(EXP_SUM) for x in ROW],
    "layernorm": [(x - 1.0) / math.sqrt(6.5 + 1e-5) for x in ROW],  # squared deviations 0, 1, 9, 16
    "rmsnorm": [x / math.sqrt(7.5 + 1e-5) for x in ROW],  # squares 1, 4, 16, 9
}


@pytest.mark.parametrize("name", sorted(ROWWISE))
def test_row_operators_against_hand_computation(name):
    assert set(ROWWISE) == {o.name for o in OPERATORS.values() if o.kind in TAIL_KINDS}
    actual = evaluated(OPERATORS[name], torch.tensor([ROW, ROW], dtype=torch.float64))
    assert actual.tolist() == [pytest.approx(ROWWISE[name], abs=1e-12)] * 2


def test_extra_inputs_broadcast_by_layout():
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert evaluated(OPERATORS["add_bias"], x, b=torch.tensor([10.0, 20.0])).tolist() == [[11, 22], [13, 24]]
    assert evaluated(OPERATORS["mul_weight"], x, b=torch.tensor([10.0, 20.0])).tolist() == [[10, 40], [30, 80]]
    assert evaluated(OPERATORS["mul_gate"], x, b=torch.tensor([[10.0], [20.0]])).tolist() == [[10, 20], [60, 80]]
    assert evaluated(OPERATORS["add_tensor"], x, b=x).tolist() == [[2, 4], [6, 8]]
    assert evaluated(OPERATORS["mul_tensor"], x, b=x).tolist() == [[1, 4], [9, 16]]


def test_new_constants_keep_chain_shape_and_split():
    task = next(
        t for t in (generate_task(0, i, "heldout", SMALL) for i in range(20)) if "value" in t.metadata["steps"][0]
    )
    variants = [with_constants(task, seed) for seed in range(20)]
    assert len({chain_of(v) for v in variants}) > 3
    for variant in variants:
        assert [s["op"] for s in variant.metadata["steps"]] == [s["op"] for s in task.metadata["steps"]]
        assert variant.metadata["shape"] == task.metadata["shape"]
    train = {chain_of(with_constants(generate_task(0, i, "train", SMALL), i)) for i in range(300)}
    assert not train & {chain_of(v) for v in variants}


def test_a_chain_without_constants_stays_itself():
    spec = GeneratorSpec(operators=("tanh", "sigmoid", "sin", "silu"), shapes=((4, 8),))
    task = generate_task(0, 0, "train", spec)
    assert with_constants(task, 1) is task


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"min_ops": 5}, "min_ops=5 is more than max_ops=4"),
        ({"operators": ["mull"]}, "unknown 'mull'"),
        ({"operators": ["softmax"]}, "unknown 'softmax'"),
        ({"tails": ["mul"]}, "unknown 'mul'"),
        ({"shapes": []}, "at least 1"),
        ({"shapes": [[0, 8]]}, "greater than or equal to 2"),
        ({"tail_probability": 1.5}, "less than or equal to 1"),
        ({"colour": "red"}, "Extra inputs"),
    ],
)
def test_impossible_specs_are_refused(options, reason):
    with pytest.raises(ValueError, match=reason):
        GeneratorSpec.model_validate(options)


def test_a_spec_whose_chains_all_do_nothing_is_an_error():
    spec = GeneratorSpec(min_ops=2, max_ops=2, operators=("relu",), tails=())
    with pytest.raises(UserError, match="no chain of this spec fits the split 'train'"):
        generate_task(0, 0, "train", spec)
