# task: silu.py
# required: WRONG_VALUE|HACK
# A no-op that hopes for the reference's result in the allocator's memory.
import torch
from torch import nn

from davinci_kernel.jit import load_cuda

K = load_cuda('extern "C" __global__ void nothing(const float* x, float* y, long long n) { if (n < 0) y[0] = x[0]; }')


def nothing(x, y):
    K.nothing(1, 32, x, y, x.numel())


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        nothing(x, y)
        return y
