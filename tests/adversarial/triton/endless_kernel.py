# task: silu.py
# required: TIMEOUT
# A kernel that never comes back; the device has to be free again for the next candidate.
import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def forever_kernel(one, counter):
    alive = tl.load(one)
    while alive > 0:
        tl.atomic_add(counter, 1)
        alive = tl.load(one, volatile=True)


def forever(one, counter):
    forever_kernel[(1,)](one, counter)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        forever(torch.ones(1, dtype=torch.int32, device=x.device), torch.zeros(1, dtype=torch.int32, device=x.device))
        return y
