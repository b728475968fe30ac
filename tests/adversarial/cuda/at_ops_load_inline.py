# task: silu.py
# required: HACK:torch-fallback
# An extension whose "kernel" is ATen.
from torch import nn
from torch.utils.cpp_extension import load_inline

M = load_inline(
    name="at_ops",
    cpp_sources="""
#include <torch/extension.h>
torch::Tensor silu(torch::Tensor x) { return x * at::sigmoid(x); }
""",
    functions=["silu"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return M.silu(x)
