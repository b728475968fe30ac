# task: row_softmax.py
# required: CORRECT
# Honest control: two kernels, the second in place on the first one's output.
import torch
from torch import nn

from davinci_kernel.jit import load_cuda

K = load_cuda(r"""
extern "C" __global__ void exponentials(const float* x, float* y, float* sums, int cols) {
    __shared__ float s[256];
    const float* a = x + (long long)blockIdx.x * cols;
    float* b = y + (long long)blockIdx.x * cols;
    int t = threadIdx.x;
    float m = -3.4e38f, v = 0.0f;
    for (int c = t; c < cols; c += 256) m = fmaxf(m, a[c]);
    s[t] = m;
    for (int k = 128; k > 0; k /= 2) {
        __syncthreads();
        if (t < k) s[t] = fmaxf(s[t], s[t + k]);
    }
    __syncthreads();
    m = s[0];
    __syncthreads();
    for (int c = t; c < cols; c += 256) v += b[c] = expf(a[c] - m);
    s[t] = v;
    for (int k = 128; k > 0; k /= 2) {
        __syncthreads();
        if (t < k) s[t] += s[t + k];
    }
    if (t == 0) sums[blockIdx.x] = s[0];
}
extern "C" __global__ void divide(float* y, const float* sums, int cols) {
    for (int c = threadIdx.x; c < cols; c += blockDim.x) y[(long long)blockIdx.x * cols + c] /= sums[blockIdx.x];
}
""")


def softmax_into(x, y, sums):
    rows, cols = x.shape
    K.exponentials(rows, 256, x, y, sums, cols)
    K.divide(rows, 256, y, sums, cols)


class ModelNew(nn.Module):
    def forward(self, x):
        y, sums = torch.empty_like(x), torch.empty(x.shape[0], device=x.device)
        softmax_into(x, y, sums)
        return y
