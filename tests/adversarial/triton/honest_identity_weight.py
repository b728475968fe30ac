# task: rmsnorm.py
# required: CORRECT
# Honest control: applies a weight that is 1 until a trial changes it.
import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def rmsnorm_kernel(x, w, y, cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < cols
    v = tl.load(x + row * cols + offsets, mask=mask, other=0.0)
    scale = 1.0 / tl.sqrt(tl.sum(v * v, axis=0) / cols + eps)
    tl.store(y + row * cols + offsets, v * scale * tl.load(w + offsets, mask=mask), mask=mask)


def rmsnorm_into(x, w, y):
    rows, cols = x.shape
    rmsnorm_kernel[(rows,)](x, w, y, cols, 1e-6, BLOCK=triton.next_power_of_2(cols))


class ModelNew(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))

    def forward(self, x):
        y = torch.empty_like(x)
        rmsnorm_into(x, self.weight.detach(), y)
        return y
