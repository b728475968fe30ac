import torch
import torch.nn as nn

ROWS = 256  # size
COLS = 1024


class Model(nn.Module):
    def forward(self, x):
        values, indices = torch.max(x, dim=-1)
        return values, indices


def get_inputs():
    return [torch.randn(ROWS, COLS)]


def get_init_inputs():
    return []
