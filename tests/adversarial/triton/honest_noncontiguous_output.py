# task: noncontiguous.py
# required: CORRECT
# Honest control: works on the input's own memory and returns a transposed view.
import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def scale_kernel(x, y, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(y + offsets, tl.load(x + offsets, mask=mask) * 2.0 + 1.0, mask=mask)


def scale_into(x, y):
    scale_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)


class ModelNew(nn.Module):
    def forward(self, x):
        base = x.t().contiguous()
        y = torch.empty_like(base)
        scale_into(base, y)
        return y.t()
