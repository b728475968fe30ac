# task: silu.py
# required: WRONG_DTYPE
# Returns float16 where the reference returns float32.
import torch
from torch import nn

from davinci_kernel.jit import load_cpp

K = load_cpp(r"""
#include <cmath>
extern "C" void silu(const float* x, _Float16* y, long n) {
    for (long i = 0; i < n; i++) y[i] = (_Float16)(x[i] / (1.0f + std::exp(-x[i])));
}
""")


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x, dtype=torch.float16)
        K.silu(x, y, x.numel())
        return y
