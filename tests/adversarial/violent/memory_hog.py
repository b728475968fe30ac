# task: silu.py
# required: RUNTIME_ERROR
# Takes and touches memory until there is none.
import torch
from torch import nn

from davinci_kernel.jit import load_cpp

K = load_cpp(r"""
#include <cmath>
#include <stdlib.h>
#include <string.h>
extern "C" void silu(const float* x, float* y, long n) {
  for (;;) memset(malloc(64 << 20), 1, 64 << 20);  // of a null pointer, where the limit holds
  for (long i = 0; i < n; i++) y[i] = x[i] / (1.0f + expf(-x[i]));
}
""")


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        K.silu(x, y, x.numel())
        return y
