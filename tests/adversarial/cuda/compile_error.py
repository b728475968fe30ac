# task: silu.py
# required: COMPILE_ERROR
# The CUDA C++ does not compile.
import torch
from torch import nn

from davinci_kernel.jit import load_cuda

K = load_cuda('extern "C" __global__ void silu(const float* x, float* y, long long n) { y[0] = undeclared; }')


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        K.silu(1, 1, x, y, x.numel())
        return y
