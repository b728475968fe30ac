# task: silu.py
# required: TIMEOUT
# A kernel that never comes back; the device has to be free again for the next candidate.
import torch
from torch import nn

from davinci_kernel.jit import load_cuda

K = load_cuda(r"""
extern "C" __global__ void forever(const int* one, int* counter) {
    const volatile int* alive = one;
    while (true) {
        atomicAdd(counter, 1);
        if (*alive == 0) break;
    }
}
""")


def forever(one, counter):
    K.forever(1, 1, one, counter)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        forever(torch.ones(1, dtype=torch.int32, device=x.device), torch.zeros(1, dtype=torch.int32, device=x.device))
        return y
