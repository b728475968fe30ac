import torch
from torch import nn


class Model(nn.Module):
    """Draws from the global generator, which is seeded alike before both sides' forwards."""

    def forward(self, x):
        return x * (torch.rand(x.shape) < 0.5).float()


def get_inputs():
    return [torch.randn(64, 300)]


def get_init_inputs():
    return []
