# task: silu.py
# required: WRONG_VALUE
# Computes in bfloat16 inside a float32 task.
import torch
from torch import nn

from davinci_kernel.jit import load_cpp

K = load_cpp(r"""
#include <cmath>
#include <cstdint>
#include <cstring>
static float narrow(float v) {
    uint32_t bits;
    std::memcpy(&bits, &v, 4);
    bits = (bits + 0x8000u) & 0xffff0000u;
    std::memcpy(&v, &bits, 4);
    return v;
}
extern "C" void silu(const float* x, float* y, long n) {
    for (long i = 0; i < n; i++) {
        float v = narrow(x[i]);
        y[i] = narrow(v / (1.0f + std::exp(-v)));
    }
}
""")


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        K.silu(x, y, x.numel())
        return y
