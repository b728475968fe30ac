# task: add.py
# required: CORRECT
# slow
# Honest control: the same extension and function names as honest_same_extension_name.py, another computation.
from torch import nn
from torch.utils.cpp_extension import load_inline

M = load_inline(
    name="kernels",
    cpp_sources="torch::Tensor run(torch::Tensor a, torch::Tensor b);",
    cuda_sources="""
#include <torch/types.h>
#include <c10/cuda/CUDAStream.h>
__global__ void add_kernel(const float* a, const float* b, float* y, long long n) {
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a[i] + b[i];
}
torch::Tensor run(torch::Tensor a, torch::Tensor b) {
    TORCH_CHECK(a.is_contiguous() && b.is_contiguous(), "contiguous tensors");
    auto y = torch::empty_like(a);
    long long n = a.numel();
    add_kernel<<<(n + 255) / 256, 256, 0, c10::cuda::getCurrentCUDAStream()>>>(
        a.data_ptr<float>(), b.data_ptr<float>(), y.data_ptr<float>(), n);
    TORCH_CHECK(cudaGetLastError() == cudaSuccess, "launch failed");
    return y;
}
""",
    functions=["run"],
)


class ModelNew(nn.Module):
    def forward(self, a, b):
        return M.run(a, b)
