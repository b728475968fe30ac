# task: scalar.py
# required: WRONG_VALUE
# The mean square of uniform numbers is close to a third, whatever they are.
import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def fill_kernel(y, n, value, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + offsets, tl.zeros([BLOCK], tl.float32) + value, mask=offsets < n)


def fill(y, value):
    fill_kernel[(triton.cdiv(y.numel(), 1024),)](y, y.numel(), value, BLOCK=1024)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty((), device=x.device)
        fill(y, 1.0 / 3.0)
        return y
