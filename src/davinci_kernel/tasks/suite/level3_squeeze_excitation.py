import torch
import torch.nn as nn

BATCH = 4  # size
CHANNELS = 32
SIDE = 32


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.squeeze = nn.Linear(channels, channels // 4)
        self.excite = nn.Linear(channels // 4, channels)

    def forward(self, x):
        pooled = x.amax(dim=(2, 3))
        gate = torch.sigmoid(self.excite(torch.relu(self.squeeze(pooled))))
        return x * gate[:, :, None, None]


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, SIDE, SIDE)]


def get_init_inputs():
    return [CHANNELS]
