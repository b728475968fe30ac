import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH = 4  # size
CHANNELS = 16
SIDE = 64


class Model(nn.Module):
    def forward(self, x):
        return F.max_pool2d(x, kernel_size=2)


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, SIDE, SIDE)]


def get_init_inputs():
    return []
