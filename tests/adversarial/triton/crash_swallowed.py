# task: silu.py
# required: RUNTIME_ERROR
# The same, waited for and swallowed by the candidate: its fault, and never the infrastructure's.
import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def crash_kernel(x, y, far):
    tl.store(y + far, tl.load(x))


def crash(x, y):
    crash_kernel[(1,)](x, y, 1 << 44)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        try:
            crash(x, y)
            torch.cuda.current_stream().synchronize()
        except Exception:
            pass
        return y
