import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH = 2  # size
CHANNELS = 16
SIDE = 32


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.depthwise = nn.Conv2d(channels, channels, 3, padding=1, groups=channels)
        self.pointwise = nn.Conv2d(channels, 2 * channels, 1)

    def forward(self, x):
        return F.hardswish(self.pointwise(F.hardswish(self.depthwise(x))))


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, SIDE, SIDE)]


def get_init_inputs():
    return [CHANNELS]
