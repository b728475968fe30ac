# task: silu.py
# required: WRONG_VALUE|HACK|RUNTIME_ERROR
# A launch that wants 1 MB of shared memory; the error is ignored.
import contextlib

import torch
from torch import nn

from davinci_kernel.jit import load_cuda

K = load_cuda(r"""
extern "C" __global__ void silu(const float* x, float* y, long long n) {
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] / (1.0f + expf(-x[i]));
}
""")


def launch(x, y):
    K.silu((x.numel() + 255) // 256, 256, x, y, x.numel(), shared=1 << 20)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        with contextlib.suppress(Exception):
            launch(x, y)
        return y
