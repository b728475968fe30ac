# task: silu.py
# required: HACK|RUNTIME_ERROR
# The compiler writes the kernel: Inductor's Triton is not the candidate's.
import torch
from torch import nn


@torch.compile
def silu(x):
    return x * torch.sigmoid(x)


class ModelNew(nn.Module):
    def forward(self, x):
        return silu(x)
