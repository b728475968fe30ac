# task: linear.py
# required: WRONG_VALUE
# Rounds the weights of a float32 layer to bfloat16.
import torch
from torch import nn

from davinci_kernel.jit import load_cpp

K = load_cpp(r"""
extern "C" void linear(const float* x, const float* w, const float* b, float* y, long rows, long in, long out) {
    for (long r = 0; r < rows; r++)
        for (long o = 0; o < out; o++) {
            float s = b[o];
            for (long k = 0; k < in; k++) s += x[r * in + k] * w[o * in + k];
            y[r * out + o] = s;
        }
}
""")


class ModelNew(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)

    def forward(self, x):
        w = self.linear.weight.bfloat16().float()
        y = torch.empty(x.shape[0], w.shape[0])
        K.linear(x, w, self.linear.bias, y, x.shape[0], x.shape[1], w.shape[0])
        return y
