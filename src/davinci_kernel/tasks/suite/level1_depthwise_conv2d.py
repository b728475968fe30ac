import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH = 2  # size
CHANNELS = 16
SIDE = 48


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(channels, 1, 3, 3))

    def forward(self, x):
        return F.conv2d(x, self.weight, padding=1, groups=x.shape[1])


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, SIDE, SIDE)]


def get_init_inputs():
    return [CHANNELS]
