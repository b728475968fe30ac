import torch
import torch.nn as nn

TOKENS = 128  # size
HEADS = 8
WIDTH = 64


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.frequencies = 10000.0 ** (-torch.arange(0, width, 2) / width)

    def forward(self, x):
        angles = torch.arange(x.shape[0])[:, None] * self.frequencies
        cos, sin = angles.cos()[:, None, :], angles.sin()[:, None, :]
        first, second = x.chunk(2, dim=-1)
        return torch.cat([first * cos - second * sin, first * sin + second * cos], dim=-1)


def get_inputs():
    return [torch.randn(TOKENS, HEADS, WIDTH)]


def get_init_inputs():
    return [WIDTH]
