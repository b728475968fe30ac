# task: silu.py
# required: RUNTIME_ERROR
# Writes to an illegal address.
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
        crash(x, y)
        return y
