# task: rmsnorm.py
# required: CORRECT
# Honest control: applies a weight that is 1 until a trial changes it.
import torch
from torch import nn

from davinci_kernel.jit import load_cuda

K = load_cuda(r"""
extern "C" __global__ void rmsnorm(const float* x, const float* w, float* y, int cols, float eps) {
    __shared__ float s[256];
    long long start = (long long)blockIdx.x * cols;
    float v = 0.0f;
    for (int c = threadIdx.x; c < cols; c += 256) v += x[start + c] * x[start + c];
    s[threadIdx.x] = v;
    for (int k = 128; k > 0; k /= 2) {
        __syncthreads();
        if (threadIdx.x < k) s[threadIdx.x] += s[threadIdx.x + k];
    }
    __syncthreads();
    float scale = 1.0f / sqrtf(s[0] / cols + eps);
    for (int c = threadIdx.x; c < cols; c += 256) y[start + c] = x[start + c] * scale * w[c];
}
""")


def rmsnorm_into(x, w, y):
    K.rmsnorm(x.shape[0], 256, x, w, y, x.shape[1], 1e-6)


class ModelNew(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))

    def forward(self, x):
        y = torch.empty_like(x)
        rmsnorm_into(x, self.weight.detach(), y)
        return y
