import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)

    def forward(self, x):
        return self.linear(x)


def get_inputs():
    return [torch.randn(2048, 1024)]


def get_init_inputs():
    return [1024, 512]
