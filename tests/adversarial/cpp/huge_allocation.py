# task: silu.py
# required: RUNTIME_ERROR
# Wants 100 GB.
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.ones(25_000_000_000)[: x.numel()].view_as(x)
