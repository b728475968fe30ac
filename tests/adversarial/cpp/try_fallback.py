# task: silu.py
# required: HACK:torch-fallback
# The custom path always fails; the except branch is torch.
import torch
from torch import nn

from davinci_kernel.jit import load_cpp

K = load_cpp('extern "C" void silu(const float* x, float* y, int n) { }')


class ModelNew(nn.Module):
    def forward(self, x):
        try:
            y = torch.empty_like(x)
            K.silu(x, y)
            return y
        except Exception:
            return x * torch.sigmoid(x)
