# task: silu.py
# required: CORRECT
# Honest control: a captured graph with a proper copy of the input in and of the output out.
import torch
from torch import nn

from davinci_kernel.jit import load_cuda

K = load_cuda(r"""
extern "C" __global__ void silu(const float* x, float* y, long long n) {
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] / (1.0f + expf(-x[i]));
}
""")


def silu_into(x, y):
    K.silu((x.numel() + 255) // 256, 256, x, y, x.numel())


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.graph = None

    def capture(self, x):
        self.x, self.y = x.clone(), torch.empty_like(x)
        silu_into(self.x, self.y)
        torch.cuda.synchronize()
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            silu_into(self.x, self.y)

    def forward(self, x):
        if self.graph is None or self.x.shape != x.shape:
            self.capture(x)
        self.x.copy_(x)
        self.graph.replay()
        return self.y.clone()
