# task: scale_bfloat16.py
# required: WRONG_DTYPE
# Returns float32 where the reference returns bfloat16.
import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def scale_kernel(x, y, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(y + offsets, tl.load(x + offsets, mask=mask).to(tl.float32) * 2.5, mask=mask)


def scale_into(x, y):
    scale_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x, dtype=torch.float32)
        scale_into(x, y)
        return y
