# task: silu.py
# required: CORRECT
# Honest control: one kernel does all the work.
import torch
from torch import nn

from davinci_kernel.jit import load_cpp

K = load_cpp(r"""
#include <cmath>
extern "C" void silu(const float* x, float* y, long n) {
    #pragma omp parallel for
    for (long i = 0; i < n; i++) y[i] = x[i] / (1.0f + std::exp(-x[i]));
}
""")


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        K.silu(x, y, x.numel())
        return y
