# task: scalar.py
# required: WRONG_VALUE
# The mean square of uniform numbers is close to a third, whatever they are.
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
        y = torch.empty((), device=x.device)
        fill(y, 1.0 / 3.0)
        return y
