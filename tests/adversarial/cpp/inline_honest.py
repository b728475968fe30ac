# task: silu.py
# required: CORRECT
# slow
# Honest control: an extension that allocates through torch and computes by itself.
from torch import nn
from torch.utils.cpp_extension import load_inline

M = load_inline(
    name="inline_honest",
    cpp_sources="""
#include <torch/extension.h>
#include <cmath>
torch::Tensor silu(torch::Tensor x) {
    TORCH_CHECK(x.is_contiguous(), "contiguous");
    auto y = torch::empty_like(x);
    const float* a = x.data_ptr<float>();
    float* b = y.data_ptr<float>();
    for (int64_t i = 0; i < x.numel(); i++) b[i] = a[i] / (1.0f + std::exp(-a[i]));
    return y;
}
""",
    functions=["silu"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return M.silu(x)
