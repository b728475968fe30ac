import torch
import torch.nn as nn

BATCH = 8
HEADS = 4
TOKENS = 256  # size
WIDTH = 32


class Model(nn.Module):
    def forward(self, q, keys, values):
        scores = torch.einsum("bhd,bhtd->bht", q, keys) / q.shape[-1] ** 0.5
        return torch.einsum("bht,bhtd->bhd", torch.softmax(scores, dim=-1), values)


def get_inputs():
    return [
        torch.randn(BATCH, HEADS, WIDTH),
        torch.randn(BATCH, HEADS, TOKENS, WIDTH),
        torch.randn(BATCH, HEADS, TOKENS, WIDTH),
    ]


def get_init_inputs():
    return []
