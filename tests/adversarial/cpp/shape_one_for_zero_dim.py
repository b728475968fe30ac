# task: scalar.py
# required: WRONG_SHAPE
# [1] is not [].
import torch
from torch import nn

from davinci_kernel.jit import load_cpp

K = load_cpp(r"""
extern "C" void mean_square(const float* x, float* y, long n) {
    double s = 0.0;
    for (long i = 0; i < n; i++) s += (double)x[i] * x[i];
    *y = (float)(s / n);
}
""")


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty(1)
        K.mean_square(x, y, x.numel())
        return y
