# task: silu.py
# required: RUNTIME_ERROR
# The same, waited for and swallowed by the candidate: its fault, and never the infrastructure's.
import torch
from torch import nn

from davinci_kernel.jit import load_cuda

K = load_cuda(r"""
extern "C" __global__ void crash(const float* x, float* y, long long far) { y[far] = x[0]; }
""")


def crash(x, y):
    K.crash(1, 1, x, y, 1 << 44)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        try:
            crash(x, y)
            torch.cuda.current_stream().synchronize()
        except Exception:
            pass
        return y
