# task: pair.py
# required: WRONG_TYPE
# A list is not a tuple.
import torch
from torch import nn

from davinci_kernel.jit import load_cpp

K = load_cpp(r"""
#include <cmath>
extern "C" void both(const float* x, float* y, long* counts, long rows, long cols) {
    for (long r = 0; r < rows; r++) {
        long count = 0;
        for (long c = 0; c < cols; c++) {
            y[r * cols + c] = std::fabs(x[r * cols + c]) + 0.5f;
            count += x[r * cols + c] > 0.0f;
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
        return [y, counts]
