# task: silu.py
# required: RUNTIME_ERROR
# Closes every descriptor, the evaluator's too.
import torch
from torch import nn

from davinci_kernel.jit import load_cpp

K = load_cpp(r"""
#include <cmath>
#include <unistd.h>
extern "C" void silu(const float* x, float* y, long n) {
  for (int fd = 0; fd < 1024; fd++) close(fd);
  for (long i = 0; i < n; i++) y[i] = x[i] / (1.0f + expf(-x[i]));
}
""")


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        K.silu(x, y, x.numel())
        return y
