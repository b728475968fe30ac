# task: transpose.py
# required: CORRECT
# Honest control: writes the transposed output contiguously; strides may differ from the reference's.
import torch
from torch import nn

from davinci_kernel.jit import load_cpp

K = load_cpp(r"""
extern "C" void scale(const float* x, float* y, long rows, long cols) {
    for (long r = 0; r < rows; r++)
        for (long c = 0; c < cols; c++) y[c * rows + r] = x[r * cols + c] * 2.0f + 1.0f;
}
""")


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty(x.shape[1], x.shape[0])
        K.scale(x, y, x.shape[0], x.shape[1])
        return y
