# task: softmax.py
# required: WRONG_VALUE
# The mean of the output, everywhere.
import torch
from torch import nn

from davinci_kernel.jit import load_cpp

K = load_cpp(r"""
extern "C" void fill(float* y, long n, float v) { for (long i = 0; i < n; i++) y[i] = v; }
""")


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        K.fill(y, y.numel(), 1.0 / x.shape[-1])
        return y
