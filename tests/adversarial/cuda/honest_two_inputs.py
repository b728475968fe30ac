# task: add.py
# required: CORRECT
# Honest control: two inputs.
import torch
from torch import nn

from davinci_kernel.jit import load_cuda

K = load_cuda(r"""
extern "C" __global__ void add(const float* a, const float* b, float* y, long long n) {
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a[i] + b[i];
}
""")


def add_into(a, b, y):
    K.add((a.numel() + 255) // 256, 256, a, b, y, a.numel())


class ModelNew(nn.Module):
    def forward(self, a, b):
        y = torch.empty_like(a)
        add_into(a, b, y)
        return y
