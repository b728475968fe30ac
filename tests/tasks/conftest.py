"""What tests of the tasks share."""

from typing import Any

import pytest

REFERENCE = """\
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return x * {factor}


def get_inputs():
    return [torch.randn(4, 8)]


def get_init_inputs():
    return []
"""


@pytest.fixture
def reference():
    """`reference(factor)`: a small reference, different for each factor."""

    def make(factor: Any = 2.0, entry_point: str = "Model") -> str:
        return REFERENCE.format(factor=factor).replace("class Model", f"class {entry_point}")

    return make
