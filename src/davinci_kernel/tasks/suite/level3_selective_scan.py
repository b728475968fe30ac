import torch
import torch.nn as nn

BATCH = 2  # size
TOKENS = 64
WIDTH = 128


class Model(nn.Module):
    def forward(self, x, decay):
        a = torch.sigmoid(decay)
        state = torch.zeros_like(x[:, 0])
        states = []
        for t in range(x.shape[1]):
            state = a[:, t] * state + x[:, t]
            states.append(state)
        return torch.stack(states, dim=1)


def get_inputs():
    return [torch.randn(BATCH, TOKENS, WIDTH), torch.randn(BATCH, TOKENS, WIDTH)]


def get_init_inputs():
    return []
