# task: row_softmax.py
# required: WRONG_VALUE
# The mean of the output, everywhere.
import torch
from torch import nn

from davinci_kernel.jit import load_cuda

K = load_cuda(r"""
extern "C" __global__ void fill(float* y, long long n, float value) {
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = value;
}
""")


def fill(y, value):
    K.fill((y.numel() + 255) // 256, 256, y, y.numel(), value)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        fill(y, 1.0 / x.shape[-1])
        return y
