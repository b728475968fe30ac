import torch
from torch import nn


class Model(nn.Module):
    """A bfloat16 input and output."""

    def forward(self, x):
        return x * 2.5


def get_inputs():
    return [torch.randn(4096, 1024, dtype=torch.bfloat16)]


def get_init_inputs():
    return []
