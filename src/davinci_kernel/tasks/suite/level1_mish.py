import torch
import torch.nn as nn
import torch.nn.functional as F

ROWS = 256  # size
COLS = 1024


class Model(nn.Module):
    def forward(self, x):
        return F.mish(x)


def get_inputs():
    return [torch.randn(ROWS, COLS)]


def get_init_inputs():
    return []
