# task: silu.py
# required: CORRECT
# Honest control: CuPy compiles and launches on torch's current stream.
import cupy
import torch
from torch import nn

M = cupy.RawModule(
    code=r"""
extern "C" __global__ void silu(const float* x, float* y, long long n) {
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] / (1.0f + expf(-x[i]));
}
"""
)
SILU = M.get_function("silu")


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        with cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream):
            SILU(((x.numel() + 255) // 256,), (256,), (x.data_ptr(), y.data_ptr(), x.numel()))
        return y
