import torch
import torch.nn as nn

ROWS = 64  # size
WIDTH = 128


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inputs = nn.Linear(width, 4 * width)
        self.state = nn.Linear(width, 4 * width)

    def forward(self, x, h, c):
        i, f, g, o = (self.inputs(x) + self.state(h)).chunk(4, dim=-1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        return torch.sigmoid(o) * torch.tanh(c), c


def get_inputs():
    return [torch.randn(ROWS, WIDTH) for _ in range(3)]


def get_init_inputs():
    return [WIDTH]
