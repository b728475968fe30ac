# task: mapping.py
# required: CORRECT
# Honest control: a dict of two outputs from one kernel.
import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def both_kernel(x, double, square, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    v = tl.load(x + offsets, mask=mask)
    tl.store(double + offsets, 2.0 * v, mask=mask)
    tl.store(square + offsets, v * v, mask=mask)


def both_into(x, double, square):
    both_kernel[(triton.cdiv(x.numel(), 1024),)](x, double, square, x.numel(), BLOCK=1024)


class ModelNew(nn.Module):
    def forward(self, x):
        double, square = torch.empty_like(x), torch.empty_like(x)
        both_into(x, double, square)
        return {"double": double, "square": square}
