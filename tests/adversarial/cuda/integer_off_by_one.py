# task: cumsum_int.py
# required: WRONG_VALUE
# One column is off by one, far below any relative tolerance: integers compare exactly.
import torch
from torch import nn

from davinci_kernel.jit import load_cuda

K = load_cuda(r"""
extern "C" __global__ void cumsum(const int* x, long long* y, int rows, int cols) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows) return;
    long long s = 0;
    for (int c = 0; c < cols; c++) y[(long long)r * cols + c] = (s += x[(long long)r * cols + c]) + (c == 1000);
}
""")


def cumsum_into(x, y):
    K.cumsum((x.shape[0] + 31) // 32, 32, x, y, x.shape[0], x.shape[1])


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty(x.shape, dtype=torch.int64, device=x.device)
        cumsum_into(x, y)
        return y
