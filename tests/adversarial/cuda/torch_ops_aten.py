# task: silu.py
# required: HACK:torch-fallback
# The same through torch.ops.aten.
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.ops.aten.silu.default(x)
