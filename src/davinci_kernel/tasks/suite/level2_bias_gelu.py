import torch
import torch.nn as nn
import torch.nn.functional as F

ROWS = 256  # size
COLS = 1024


class Model(nn.Module):
    def forward(self, x, bias):
        return F.gelu(x + bias)


def get_inputs():
    return [torch.randn(ROWS, COLS), torch.randn(COLS)]


def get_init_inputs():
    return []
