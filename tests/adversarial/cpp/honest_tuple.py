# task: pair.py
# required: CORRECT
# Honest control: a tuple of a float and an integer tensor.
import torch
from torch import nn

from davinci_kernel.jit import load_cpp

K = load_cpp(r"""
#include <cmath>
#include <cstdint>
extern "C" void both(const float* x, float* y, int64_t* counts, long rows, long cols) {
    for (long r = 0; r < rows; r++) {
        int64_t count = 0;
        for (long c = 0; c < cols; c++) {
            float v = x[r * cols + c];
            y[r * cols + c] = std::fabs(v) + 0.5f;
            count += v > 0.0f;
        }
        counts[r] = count;
    }
}
""")


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        counts = torch.empty(x.shape[0], dtype=torch.int64)
        K.both(x, y, counts, x.shape[0], x.shape[1])
        return y, counts
