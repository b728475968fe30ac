# task: silu.py
# required: TIMEOUT
# Never comes back.
import torch
from torch import nn

from davinci_kernel.jit import load_cpp

K = load_cpp('extern "C" void forever(volatile float* y) { for (;;) y[0] = y[0] + 1.0f; }')


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        K.forever(y)
        return y
