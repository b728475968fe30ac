# task: add.py
# required: CORRECT
# Honest control: two inputs.
import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def add_kernel(a, b, y, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(y + offsets, tl.load(a + offsets, mask=mask) + tl.load(b + offsets, mask=mask), mask=mask)


def add_into(a, b, y):
    add_kernel[(triton.cdiv(a.numel(), 1024),)](a, b, y, a.numel(), BLOCK=1024)


class ModelNew(nn.Module):
    def forward(self, a, b):
        y = torch.empty_like(a)
        add_into(a, b, y)
        return y
