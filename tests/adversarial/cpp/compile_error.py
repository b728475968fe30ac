# task: silu.py
# required: COMPILE_ERROR
# The C++ does not compile.
from torch import nn

from davinci_kernel.jit import load_cpp

K = load_cpp('extern "C" void silu(const float* x, float* y, long n) { y[0] = undeclared; }')


class ModelNew(nn.Module):
    def forward(self, x):
        return x
