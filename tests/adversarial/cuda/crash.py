# task: silu.py
# required: RUNTIME_ERROR
# Writes to an illegal address.
import torch
from torch import nn

from davinci_kernel.jit import load_cuda

K = load_cuda(r"""
extern "C" __global__ void crash(const float* x, float* y, long long far) { y[far] = x[0]; }
""")


def crash(x, y):
    K.crash(1, 1, x, y, 1 << 44)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        crash(x, y)
        return y
