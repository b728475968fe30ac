# task: scalar.py
# required: WRONG_VALUE
# The mean square of uniform numbers is close to a third, whatever they are.
import torch
from torch import nn

from davinci_kernel.jit import load_cpp

K = load_cpp('extern "C" void third(float* y) { *y = 1.0f / 3.0f; }')


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty(())
        K.third(y)
        return y
