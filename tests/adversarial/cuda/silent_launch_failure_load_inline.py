# task: silu.py
# required: WRONG_VALUE|HACK|RUNTIME_ERROR
# slow
# The same through <<<>>>, whose error nobody asks for: the launch fails without a word.
from torch import nn
from torch.utils.cpp_extension import load_inline

M = load_inline(
    name="silent_launch_failure",
    cpp_sources="torch::Tensor silu(torch::Tensor x);",
    cuda_sources="""
#include <torch/types.h>
#include <c10/cuda/CUDAStream.h>
__global__ void silu_kernel(const float* x, float* y, long long n) {
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] / (1.0f + expf(-x[i]));
}
torch::Tensor silu(torch::Tensor x) {
    auto y = torch::empty_like(x);
    long long n = x.numel();
    silu_kernel<<<(n + 255) / 256, 256, 1 << 20, c10::cuda::getCurrentCUDAStream()>>>(
        x.data_ptr<float>(), y.data_ptr<float>(), n);
    cudaGetLastError();
    return y;
}
""",
    functions=["silu"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return M.silu(x)
