import torch
from torch import nn


class Model(nn.Module):
    """Two inputs."""

    def forward(self, a, b):
        return a + b


def get_inputs():
    return [torch.randn(4096, 1024), torch.randn(4096, 1024)]


def get_init_inputs():
    return []
