# task: noncontiguous.py
# required: CORRECT
# Honest control: reads the transposed input and writes contiguously; strides may differ from the reference's.
import torch
from torch import nn

from davinci_kernel.jit import load_cuda

K = load_cuda(r"""
extern "C" __global__ void scale(const float* x, float* y, int rows, int cols) {
    __shared__ float tile[32][33];
    int r = blockIdx.y * 32, c = blockIdx.x * 32, i = threadIdx.x, j = threadIdx.y;
    if (c + j < cols && r + i < rows) tile[j][i] = x[(long long)(c + j) * rows + r + i];
    __syncthreads();
    if (r + j < rows && c + i < cols) y[(long long)(r + j) * cols + c + i] = tile[i][j] * 2.0f + 1.0f;
}
""")


def scale(x):
    rows, cols = x.shape
    y = torch.empty(rows, cols, device=x.device)
    K.scale(((cols + 31) // 32, (rows + 31) // 32), (32, 32), x.t().contiguous(), y, rows, cols)
    return y


class ModelNew(nn.Module):
    def forward(self, x):
        return scale(x)
