# task: linear.py
# required: CORRECT
# Honest control: initialises its weights differently; names and shapes match, so the reference's are copied in.
import torch
from torch import nn

from davinci_kernel.jit import load_cuda

K = load_cuda(r"""
extern "C" __global__ void linear(const float* x, const float* w, const float* bias, float* y, int m, int n, int k) {
    __shared__ float s[32][33], t[32][33];
    int i = threadIdx.x, j = threadIdx.y, row = blockIdx.y * 32 + j, col = blockIdx.x * 32 + i;
    int other = blockIdx.x * 32 + j;
    float acc = 0.0f;
    for (int k0 = 0; k0 < k; k0 += 32) {
        s[j][i] = row < m && k0 + i < k ? x[(long long)row * k + k0 + i] : 0.0f;
        t[j][i] = other < n && k0 + i < k ? w[(long long)other * k + k0 + i] : 0.0f;
        __syncthreads();
        for (int q = 0; q < 32; q++) acc += s[j][q] * t[i][q];
        __syncthreads();
    }
    if (row < m && col < n) y[(long long)row * n + col] = acc + bias[col];
}
""")


def linear_into(x, w, bias, y):
    (m, k), n = x.shape, w.shape[0]
    K.linear(((n + 31) // 32, (m + 31) // 32), (32, 32), x, w, bias, y, m, n, k)


class ModelNew(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)
        nn.init.zeros_(self.linear.weight)
        nn.init.constant_(self.linear.bias, 3.0)

    def forward(self, x):
        w = self.linear.weight.detach()
        y = torch.empty(x.shape[0], w.shape[0], device=x.device)
        linear_into(x, w, self.linear.bias.detach(), y)
        return y
