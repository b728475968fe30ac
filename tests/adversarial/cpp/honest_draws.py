# task: dropout.py
# required: CORRECT
# Honest control: draws from the global generator as the reference does; the judge has seeded it.
import torch
from torch import nn

from davinci_kernel.jit import load_cpp

K = load_cpp(r"""
extern "C" void mask(const float* x, const float* u, float* y, long n) {
    for (long i = 0; i < n; i++) y[i] = u[i] < 0.5f ? x[i] : 0.0f;
}
""")


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        K.mask(x, torch.rand(x.shape), y, x.numel())
        return y
