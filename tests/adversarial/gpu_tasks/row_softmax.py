import torch
from torch import nn


class Model(nn.Module):
    """A small signal: every output is around 1 / 2048."""

    def forward(self, x):
        return torch.softmax(x, dim=-1)


def get_inputs():
    return [torch.randn(2048, 2048)]


def get_init_inputs():
    return []
