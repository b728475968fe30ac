import torch
from torch import nn


class Model(nn.Module):
    """The weight is 1 everywhere until a trial randomises it."""

    def __init__(self, size):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(dim=-1, keepdim=True) + 1e-6) * self.weight


def get_inputs():
    return [torch.randn(4096, 1024)]


def get_init_inputs():
    return [1024]
