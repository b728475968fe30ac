# task: silu.py
# required: CORRECT
# Honest control: a helper thread that has finished before forward returns.
import threading

import torch
from torch import nn

from davinci_kernel.jit import load_cpp

K = load_cpp(r"""
#include <cmath>
extern "C" void silu(const float* x, float* y, long n) {
    for (long i = 0; i < n; i++) y[i] = x[i] / (1.0f + std::exp(-x[i]));
}
""")


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        half = x.shape[0] // 2
        thread = threading.Thread(target=K.silu, args=(x[:half], y[:half], x[:half].numel()))
        thread.start()
        K.silu(x[half:], y[half:], x[half:].numel())
        thread.join()
        return y
