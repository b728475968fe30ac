# task: softmax.py
# required: CORRECT
# Honest control: -ffast-math and one pass per row; the rounding differs from torch's but stays far below the signal.
import torch
from torch import nn

from davinci_kernel.jit import load_cpp

K = load_cpp(
    r"""
#include <cmath>
extern "C" void softmax(const float* x, float* y, long rows, long cols) {
    #pragma omp parallel for
    for (long r = 0; r < rows; r++) {
        const float* a = x + r * cols;
        float* b = y + r * cols;
        float m = a[0], s = 0.0f;
        for (long c = 1; c < cols; c++) m = a[c] > m ? a[c] : m;
        for (long c = 0; c < cols; c++) { b[c] = expf(a[c] - m); s += b[c]; }
        for (long c = 0; c < cols; c++) b[c] /= s;
    }
}
""",
    ["-ffast-math"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        K.softmax(x, y, x.shape[0], x.shape[1])
        return y
