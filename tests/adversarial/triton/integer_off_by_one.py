# task: cumsum_int.py
# required: WRONG_VALUE
# One column is off by one, far below any relative tolerance: integers compare exactly.
import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def cumsum_kernel(x, y, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < cols
    v = tl.load(x + row * cols + offsets, mask=mask, other=0).to(tl.int64)
    tl.store(y + row * cols + offsets, tl.cumsum(v, axis=0) + (offsets == 1000).to(tl.int64), mask=mask)


def cumsum_into(x, y):
    cumsum_kernel[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty(x.shape, dtype=torch.int64, device=x.device)
        cumsum_into(x, y)
        return y
