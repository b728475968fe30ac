# task: scale_bfloat16.py
# required: WRONG_DTYPE
# Returns float32 where the reference returns bfloat16.
import torch
from torch import nn

from davinci_kernel.jit import load_cuda

K = load_cuda(r"""
extern "C" __global__ void scale(const unsigned short* x, float* y, long long n) {
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = __uint_as_float((unsigned int)x[i] << 16) * 2.5f;
}
""")


def scale_into(x, y):
    K.scale((x.numel() + 255) // 256, 256, x, y, x.numel())


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x, dtype=torch.float32)
        scale_into(x, y)
        return y
