# task: silu.py
# required: COMPILE_ERROR
# The Triton kernel does not compile, which shows at its first launch.
import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def silu_kernel(x, y, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + offsets, mask=offsets < n)
    tl.store(y + offsets, v * tl.no_such_function(v), mask=offsets < n)


def silu_into(x, y):
    silu_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        silu_into(x, y)
        return y
