# task: silu.py
# required: RUNTIME_ERROR
# The same from C++: a missing result is never a pass.
import torch
from torch import nn

from davinci_kernel.jit import load_cpp

K = load_cpp(r"""
#include <cstdio>
#include <unistd.h>
extern "C" void leave(const float* x) {
    std::puts("{\"correct\": true, \"speedup\": 100.0}");
    std::fflush(stdout);
    _exit(0);
}
""")


class ModelNew(nn.Module):
    def forward(self, x):
        K.leave(x)
        return torch.empty_like(x)
