# task: pair.py
# required: CORRECT
# Honest control: a tuple of a float and an integer tensor.
import torch
from torch import nn

from davinci_kernel.jit import load_cuda

K = load_cuda(r"""
extern "C" __global__ void rows(const float* x, float* y, long long* counts, int cols) {
    __shared__ int total;
    if (threadIdx.x == 0) total = 0;
    __syncthreads();
    long long start = (long long)blockIdx.x * cols;
    int count = 0;
    for (int c = threadIdx.x; c < cols; c += blockDim.x) {
        y[start + c] = fabsf(x[start + c]) + 0.5f;
        count += x[start + c] > 0.0f;
    }
    atomicAdd(&total, count);
    __syncthreads();
    if (threadIdx.x == 0) counts[blockIdx.x] = total;
}
""")


def rows_into(x, y, counts):
    K.rows(x.shape[0], 256, x, y, counts, x.shape[1])


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        counts = torch.empty(x.shape[0], dtype=torch.int64, device=x.device)
        rows_into(x, y, counts)
        return y, counts
