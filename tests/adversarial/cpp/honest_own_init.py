# task: linear.py
# required: CORRECT
# Honest control: initialises its weights differently; names and shapes match, so the reference's are copied in.
import torch
from torch import nn

from davinci_kernel.jit import load_cpp

K = load_cpp(r"""
extern "C" void linear(const float* x, const float* w, const float* b, float* y, long rows, long in, long out) {
    #pragma omp parallel for
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
        nn.init.zeros_(self.linear.weight)
        nn.init.constant_(self.linear.bias, 3.0)

    def forward(self, x):
        w = self.linear.weight
        y = torch.empty(x.shape[0], w.shape[0])
        K.linear(x, w, self.linear.bias, y, x.shape[0], x.shape[1], w.shape[0])
        return y
