# task: noncontiguous.py
# required: CORRECT
# Honest control: works on the input's own memory and returns a transposed view.
import torch
from torch import nn

from davinci_kernel.jit import load_cuda

K = load_cuda(r"""
extern "C" __global__ void scale(const float* x, float* y, long long n) {
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] * 2.0f + 1.0f;
}
""")


def scale_into(x, y):
    K.scale((x.numel() + 255) // 256, 256, x, y, x.numel())


class ModelNew(nn.Module):
    def forward(self, x):
        base = x.t().contiguous()
        y = torch.empty_like(base)
        scale_into(base, y)
        return y.t()
