import torch
from torch import nn


class Model(nn.Module):
    """Draws from the device's global generator, which is seeded alike before both sides' forwards."""

    def forward(self, x):
        return x * (torch.rand(x.shape, device=x.device) < 0.5).float()


def get_inputs():
    return [torch.randn(4096, 1024)]


def get_init_inputs():
    return []
