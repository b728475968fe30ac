import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH = 4  # size
CHANNELS = 32
SIDE = 32
GROUPS = 8


class Model(nn.Module):
    def __init__(self, groups, channels):
        super().__init__()
        self.groups = groups
        self.weight = nn.Parameter(torch.randn(channels))
        self.bias = nn.Parameter(torch.randn(channels))

    def forward(self, x):
        return F.silu(F.group_norm(x, self.groups, self.weight, self.bias))


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, SIDE, SIDE)]


def get_init_inputs():
    return [GROUPS, CHANNELS]
