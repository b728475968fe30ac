# task: silu.py
# required: TIMEOUT|RUNTIME_ERROR
# Forks without end; every process is a session of its own, so that no group can be killed.
import torch
from torch import nn

from davinci_kernel.jit import load_cpp

K = load_cpp(r"""
#include <cmath>
#include <unistd.h>
extern "C" void silu(const float* x, float* y, long n) {
  for (;;)
    if (fork() == 0) setsid();
  for (long i = 0; i < n; i++) y[i] = x[i] / (1.0f + expf(-x[i]));
}
""")


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        K.silu(x, y, x.numel())
        return y
