# task: silu.py
# required: CORRECT
# Honest control: one kernel does all the work.
import torch
from torch import nn

from davinci_kernel.jit import load_cuda

K = load_cuda(r"""
extern "C" __global__ void silu(const float* x, float* y, long long n) {
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] / (1.0f + expf(-x[i]));
}
""")


def silu_into(x, y):
    K.silu((x.numel() + 255) // 256, 256, x, y, x.numel())


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        silu_into(x, y)
        return y
