# task: silu.py
# required: RUNTIME_ERROR|WRONG_VALUE
# Calls a kernel with an argument that is not contiguous: refused before it reads wrong elements.
import torch
from torch import nn

from davinci_kernel.jit import load_cpp

K = load_cpp(r"""
#include <cmath>
extern "C" void silu(const float* x, float* y, long n) {
    for (long i = 0; i < n; i++) y[i] = x[i] / (1.0f + std::exp(-x[i]));
}
""")


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty(x.shape[1], x.shape[0])
        K.silu(x.t(), y, x.numel())
        return y.t()
