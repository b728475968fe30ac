# task: matmul.py
# required: CORRECT
# Honest control: four parts of K summed by atomics, in a different order every time, within 1e-4.
import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def split_kernel(a, b, c, M, N, K, PART: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    first = tl.program_id(2) * PART
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(first, first + PART, BK):
        k = start + tl.arange(0, BK)
        left = tl.load(a + rows[:, None] * K + k[None, :], mask=(rows[:, None] < M) & (k[None, :] < K), other=0.0)
        right = tl.load(b + k[:, None] * N + cols[None, :], mask=(k[:, None] < K) & (cols[None, :] < N), other=0.0)
        acc += tl.dot(left, right, input_precision="ieee")
    tl.atomic_add(c + rows[:, None] * N + cols[None, :], acc, mask=(rows[:, None] < M) & (cols[None, :] < N))


def add_product(a, b, c):
    (M, K), N = a.shape, b.shape[1]
    grid = (triton.cdiv(M, 64), triton.cdiv(N, 64), triton.cdiv(K, 256))
    split_kernel[grid](a, b, c, M, N, K, PART=256, BM=64, BN=64, BK=32)


class ModelNew(nn.Module):
    def forward(self, a, b):
        c = torch.zeros(a.shape[0], b.shape[1], device=a.device)
        add_product(a, b, c)
        return c
