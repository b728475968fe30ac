# task: transpose.py
# required: CORRECT
# Honest control: the output is a transposed view, as the reference's is.
import torch
from torch import nn

from davinci_kernel.jit import load_cpp

K = load_cpp(r"""
extern "C" void scale(const float* x, float* y, long n) {
    for (long i = 0; i < n; i++) y[i] = x[i] * 2.0f + 1.0f;
}
""")


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        K.scale(x, y, x.numel())
        return y.t()
