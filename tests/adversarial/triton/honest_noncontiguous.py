# task: noncontiguous.py
# required: CORRECT
# Honest control: reads and writes by strides; the output has the input's.
import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def scale_kernel(x, y, rows, cols, xr, xc, yr, yc, BR: tl.constexpr, BC: tl.constexpr):
    r = (tl.program_id(0) * BR + tl.arange(0, BR))[:, None]
    c = (tl.program_id(1) * BC + tl.arange(0, BC))[None, :]
    mask = (r < rows) & (c < cols)
    tl.store(y + r * yr + c * yc, tl.load(x + r * xr + c * xc, mask=mask) * 2.0 + 1.0, mask=mask)


def scale(x):
    y = torch.empty_like(x)
    grid = (triton.cdiv(x.shape[0], 32), triton.cdiv(x.shape[1], 32))
    scale_kernel[grid](x, y, *x.shape, *x.stride(), *y.stride(), BR=32, BC=32)
    return y


class ModelNew(nn.Module):
    def forward(self, x):
        return scale(x)
