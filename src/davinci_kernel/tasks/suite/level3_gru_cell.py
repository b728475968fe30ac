import torch
import torch.nn as nn

ROWS = 64  # size
WIDTH = 128


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inputs = nn.Linear(width, 3 * width)
        self.state = nn.Linear(width, 3 * width)

    def forward(self, x, h):
        reset_x, update_x, new_x = self.inputs(x).chunk(3, dim=-1)
        reset_h, update_h, new_h = self.state(h).chunk(3, dim=-1)
        update = torch.sigmoid(update_x + update_h)
        new = torch.tanh(new_x + torch.sigmoid(reset_x + reset_h) * new_h)
        return update * h + (1.0 - update) * new


def get_inputs():
    return [torch.randn(ROWS, WIDTH), torch.randn(ROWS, WIDTH)]


def get_init_inputs():
    return [WIDTH]
