# task: matmul.py
# required: CORRECT
# Honest control: a plain float32 product without TF32.
import torch
from torch import nn

from davinci_kernel.jit import load_cuda

K = load_cuda(r"""
extern "C" __global__ void matmul(const float* a, const float* b, float* c, int m, int n, int k) {
    __shared__ float s[32][32], t[32][32];
    int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 32 + y, col = blockIdx.x * 32 + x;
    float acc = 0.0f;
    for (int k0 = 0; k0 < k; k0 += 32) {
        s[y][x] = row < m && k0 + x < k ? a[(long long)row * k + k0 + x] : 0.0f;
        t[y][x] = col < n && k0 + y < k ? b[(long long)(k0 + y) * n + col] : 0.0f;
        __syncthreads();
        for (int j = 0; j < 32; j++) acc += s[y][j] * t[j][x];
        __syncthreads();
    }
    if (row < m && col < n) c[(long long)row * n + col] = acc;
}
""")


def matmul_into(a, b, c):
    m, k = a.shape
    n = b.shape[1]
    K.matmul(((n + 31) // 32, (m + 31) // 32), (32, 32), a, b, c, m, n, k)


class ModelNew(nn.Module):
    def forward(self, a, b):
        c = torch.empty(a.shape[0], b.shape[1], device=a.device)
        matmul_into(a, b, c)
        return c
