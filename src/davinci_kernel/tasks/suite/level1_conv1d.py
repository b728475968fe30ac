import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH = 4  # size
CHANNELS = 16
LENGTH = 512


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(2 * channels, channels, 5))

    def forward(self, x):
        return F.conv1d(x, self.weight, padding=2)


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, LENGTH)]


def get_init_inputs():
    return [CHANNELS]
