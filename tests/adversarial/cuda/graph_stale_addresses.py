# task: silu.py
# required: HACK|WRONG_VALUE|RUNTIME_ERROR
# A captured graph is replayed on the first call's input, which nobody refreshes.
import torch
from torch import nn

from davinci_kernel.jit import load_cuda

K = load_cuda(r"""
extern "C" __global__ void silu(const float* x, float* y, long long n) {
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] / (1.0f + expf(-x[i]));
}
extern "C" __global__ void copy(const float* x, float* y, long long n) {
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i];
}
""")


def silu_into(x, y):
    K.silu((x.numel() + 255) // 256, 256, x, y, x.numel())


def copy_into(x, y):
    K.copy((x.numel() + 255) // 256, 256, x, y, x.numel())


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.graph = None

    def forward(self, x):
        if self.graph is None:
            self.y = torch.empty_like(x)
            silu_into(x, self.y)
            torch.cuda.synchronize()
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):
                silu_into(x, self.y)
        self.graph.replay()
        y = torch.empty_like(x)
        copy_into(self.y, y)
        return y
