import torch
import torch.nn as nn

ROWS = 128  # size
OTHERS = 128
WIDTH = 32


class Model(nn.Module):
    def forward(self, a, b):
        return (a[:, None, :] - b[None, :, :]).square().sum(dim=-1)


def get_inputs():
    return [torch.randn(ROWS, WIDTH), torch.randn(OTHERS, WIDTH)]


def get_init_inputs():
    return []
