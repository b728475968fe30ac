import torch
import torch.nn as nn

ROWS = 256  # size
COLS = 1024


class Model(nn.Module):
    def forward(self, q, scale):
        return q.float() * scale


def get_inputs():
    return [torch.randint(-128, 128, (ROWS, COLS), dtype=torch.int8), torch.rand(ROWS, 1)]


def get_init_inputs():
    return []
