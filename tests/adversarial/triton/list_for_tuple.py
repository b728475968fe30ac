# task: pair.py
# required: WRONG_TYPE
# A list is not a tuple.
import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def rows_kernel(x, y, counts, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < cols
    v = tl.load(x + row * cols + offsets, mask=mask, other=0.0)
    tl.store(y + row * cols + offsets, tl.abs(v) + 0.5, mask=mask)
    tl.store(counts + row, tl.sum((v > 0.0).to(tl.int64), axis=0))


def rows_into(x, y, counts):
    rows, cols = x.shape
    rows_kernel[(rows,)](x, y, counts, cols, BLOCK=triton.next_power_of_2(cols))


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        counts = torch.empty(x.shape[0], dtype=torch.int64, device=x.device)
        rows_into(x, y, counts)
        return [y, counts]
