import torch
import torch.nn as nn
import torch.nn.functional as F

ROWS = 256  # size
COLS = 1024


class Model(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(cols))
        self.bias = nn.Parameter(torch.randn(cols))

    def forward(self, x):
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias)


def get_inputs():
    return [torch.randn(ROWS, COLS)]


def get_init_inputs():
    return [COLS]
