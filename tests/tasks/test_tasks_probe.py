"""Chains that no tolerance could referee are never generated."""

import pytest

from davinci_kernel.tasks._probe import is_meaningful

GROWING = [{"op": "mul", "value": 2.0}, {"op": "square"}, {"op": "square"}]
CASES = {
    "plain": ([{"op": "mul", "value": 1.35}, {"op": "sigmoid"}, {"op": "softmax"}], True),
    "constant: min(max(x, 0.5), 0.5)": ([{"op": "clamp_min", "value": 0.5}, {"op": "clamp_max", "value": 0.5}], False),
    "zero: relu(-|x|)": ([{"op": "abs"}, {"op": "neg"}, {"op": "relu"}], False),
    "saturated: the largest of many clamped values": ([{"op": "clamp_max", "value": 0.5}, {"op": "row_max"}], False),
    "nothing left to do for relu after sigmoid": ([{"op": "sigmoid"}, {"op": "relu"}], False),
    "out of scale": (GROWING, False),
    "two inputs": ([{"op": "add_bias", "input": "b0", "layout": "row"}, {"op": "tanh"}], True),
    "rmsnorm undoes a positive gate's size, not its sign": (
        [{"op": "mul_gate", "input": "b0", "layout": "column"}, {"op": "rmsnorm"}],
        True,
    ),
    "blind to an input: the gate's sign and size go": (
        [{"op": "abs"}, {"op": "mul_gate", "input": "b0", "layout": "column"}, {"op": "abs"}, {"op": "rmsnorm"}],
        False,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_is_meaningful(case):
    steps, expected = CASES[case]
    assert is_meaningful(steps) is expected
