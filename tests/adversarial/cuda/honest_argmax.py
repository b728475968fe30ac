# task: argmax.py
# required: CORRECT
# Honest control: an index per row.
import torch
from torch import nn

from davinci_kernel.jit import load_cuda

K = load_cuda(r"""
extern "C" __global__ void argmax(const float* x, long long* y, int cols) {
    __shared__ float best[256];
    __shared__ int where[256];
    const float* a = x + (long long)blockIdx.x * cols;
    int t = threadIdx.x, at = t < cols ? t : 0;
    for (int c = t + 256; c < cols; c += 256) at = a[c] > a[at] ? c : at;
    best[t] = a[at];
    where[t] = at;
    for (int k = 128; k > 0; k /= 2) {
        __syncthreads();
        if (t >= k) continue;
        bool later = best[t + k] > best[t] || (best[t + k] == best[t] && where[t + k] < where[t]);
        if (later) { best[t] = best[t + k]; where[t] = where[t + k]; }
    }
    if (t == 0) y[blockIdx.x] = where[0];
}
""")


def argmax_into(x, y):
    K.argmax(x.shape[0], 256, x, y, x.shape[1])


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty(x.shape[0], dtype=torch.int64, device=x.device)
        argmax_into(x, y)
        return y
