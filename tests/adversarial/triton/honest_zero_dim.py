# task: scalar.py
# required: CORRECT
# Honest control: an output of shape [].
import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def partial_kernel(x, parts, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + offsets, mask=offsets < n, other=0.0)
    tl.store(parts + tl.program_id(0), tl.sum(v * v, axis=0))


@triton.jit
def total_kernel(parts, y, count, n, BLOCK: tl.constexpr):
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, count, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        total += tl.load(parts + offsets, mask=offsets < count, other=0.0)
    tl.store(y, tl.sum(total, axis=0) / n)


def mean_square_into(x, y):
    count = triton.cdiv(x.numel(), 1024)
    parts = torch.empty(count, device=x.device)
    partial_kernel[(count,)](x, parts, x.numel(), BLOCK=1024)
    total_kernel[(1,)](parts, y, count, x.numel(), BLOCK=1024)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty((), device=x.device)
        mean_square_into(x, y)
        return y
