# task: silu.py
# required: CORRECT
# Leaves files wherever it can write.
import contextlib
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
        for folder in (".", "/tmp", "/" + "dev/shm", "/var/tmp", ".."):
            with contextlib.suppress(OSError):
                open(os.path.join(folder, "davinci-left-behind"), "w").close()
        y = torch.empty_like(x)
        K.silu(x, y, x.numel())
        return y
