# task: mapping.py
# required: CORRECT
# Honest control: a dict of two outputs from one kernel.
import torch
from torch import nn

from davinci_kernel.jit import load_cpp

K = load_cpp(r"""
extern "C" void both(const float* x, float* d, float* s, long n) {
    for (long i = 0; i < n; i++) { d[i] = 2.0f * x[i]; s[i] = x[i] * x[i]; }
}
""")


class ModelNew(nn.Module):
    def forward(self, x):
        double, square = torch.empty_like(x), torch.empty_like(x)
        K.both(x, double, square, x.numel())
        return {"double": double, "square": square}
