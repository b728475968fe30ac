# task: silu.py
# required: RUNTIME_ERROR
# Writes through a null pointer.
import torch
from torch import nn

from davinci_kernel.jit import load_cpp

K = load_cpp('extern "C" void crash(const float* x, long n) { *(volatile float*)(n - n) = x[0]; }')


class ModelNew(nn.Module):
    def forward(self, x):
        K.crash(x, x.numel())
        return torch.empty_like(x)
