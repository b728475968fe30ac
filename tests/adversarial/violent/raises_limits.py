# task: silu.py
# required: RUNTIME_ERROR
# Lifts its own limits, then takes 40 GB.
import torch
from torch import nn

from davinci_kernel.jit import load_cpp

K = load_cpp(r"""
#include <cmath>
#include <stdlib.h>
#include <sys/resource.h>
extern "C" void silu(const float* x, float* y, long n) {
  rlimit all = {RLIM_INFINITY, RLIM_INFINITY};
  setrlimit(RLIMIT_AS, &all);
  char* block = (char*)malloc(40L << 30);
  y[0] = block[39L << 30];  // a null pointer where the limit holds
  abort();
  for (long i = 0; i < n; i++) y[i] = x[i] / (1.0f + expf(-x[i]));
}
""")


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        K.silu(x, y, x.numel())
        return y
