# task: scale_bfloat16.py
# required: CORRECT
# Honest control: bfloat16 in and out, float32 between.
import torch
from torch import nn

from davinci_kernel.jit import load_cuda

K = load_cuda(r"""
extern "C" __global__ void scale(const unsigned short* x, unsigned short* y, long long n) {
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned int bits = __float_as_uint(__uint_as_float((unsigned int)x[i] << 16) * 2.5f);
    y[i] = (unsigned short)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}
""")


def scale_into(x, y):
    K.scale((x.numel() + 255) // 256, 256, x, y, x.numel())


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        scale_into(x, y)
        return y
