import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH = 2  # size
CHANNELS = 8
SIDE = 32


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(2 * channels, channels, 3, 3) * 0.1)
        self.bias = nn.Parameter(torch.randn(2 * channels))

    def forward(self, x):
        return torch.relu(F.conv2d(x, self.weight, self.bias, padding=1))


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, SIDE, SIDE)]


def get_init_inputs():
    return [CHANNELS]
