# task: scalar.py
# required: CORRECT
# Honest control: an output of shape [].
import torch
from torch import nn

from davinci_kernel.jit import load_cuda

K = load_cuda(r"""
extern "C" __global__ void partial(const float* x, float* parts, long long n) {
    __shared__ float s[256];
    float v = 0.0f;
    for (long long i = (long long)blockIdx.x * 256 + threadIdx.x; i < n; i += (long long)gridDim.x * 256) v += x[i] * x[i];
    s[threadIdx.x] = v;
    for (int k = 128; k > 0; k /= 2) {
        __syncthreads();
        if (threadIdx.x < k) s[threadIdx.x] += s[threadIdx.x + k];
    }
    if (threadIdx.x == 0) parts[blockIdx.x] = s[0];
}
extern "C" __global__ void total(const float* parts, float* y, int count, long long n) {
    double s = 0.0;
    for (int i = 0; i < count; i++) s += parts[i];
    *y = (float)(s / (double)n);
}
""")


def mean_square_into(x, y):
    parts = torch.empty(256, device=x.device)
    K.partial(256, 256, x, parts, x.numel())
    K.total(1, 1, parts, y, 256, x.numel())


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty((), device=x.device)
        mean_square_into(x, y)
        return y
