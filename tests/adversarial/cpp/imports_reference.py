# task: silu.py
# required: HACK:reference-access
# Calls the reference module.
from reference import Model
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = Model()

    def forward(self, x):
        return self.model(x)
