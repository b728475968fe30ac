# task: mapping.py
# required: CORRECT
# Honest control: a dict of two outputs from one kernel.
import torch
from torch import nn

from davinci_kernel.jit import load_cuda

K = load_cuda(r"""
extern "C" __global__ void both(const float* x, float* d, float* s, long long n) {
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) { d[i] = 2.0f * x[i]; s[i] = x[i] * x[i]; }
}
""")


def both_into(x, double, square):
    K.both((x.numel() + 255) // 256, 256, x, double, square, x.numel())


class ModelNew(nn.Module):
    def forward(self, x):
        double, square = torch.empty_like(x), torch.empty_like(x)
        both_into(x, double, square)
        return {"double": double, "square": square}
