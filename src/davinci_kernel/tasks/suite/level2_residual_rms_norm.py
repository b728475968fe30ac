import torch
import torch.nn as nn

ROWS = 256  # size
COLS = 1024


class Model(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(cols))

    def forward(self, x, residual):
        total = x + residual
        scale = torch.rsqrt(total.square().mean(dim=-1, keepdim=True) + 1e-6)
        return total * scale * self.weight, total


def get_inputs():
    return [torch.randn(ROWS, COLS), torch.randn(ROWS, COLS)]


def get_init_inputs():
    return [COLS]
