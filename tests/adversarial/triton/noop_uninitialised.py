# task: silu.py
# required: WRONG_VALUE|HACK
# A no-op that hopes for the reference's result in the allocator's memory.
import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def nothing_kernel(x, y, n):
    if n < 0:
        tl.store(y, tl.load(x))


def nothing(x, y):
    nothing_kernel[(1,)](x, y, x.numel())


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        nothing(x, y)
        return y
