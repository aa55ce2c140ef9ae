"""The network and the data of the hand-written trainings: those of the reference trainer."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.utils.data import TensorDataset

WIDTH, SAMPLES = 16, 4096


class Net(nn.Module):
    """Three convolutions and a classifier of images (n, 3, 32, 32)."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, WIDTH, 3, padding=1)
        self.conv2 = nn.Conv2d(WIDTH, 2 * WIDTH, 3, padding=1)
        self.pool = nn.MaxPool2d(2)
        self.conv3 = nn.Conv2d(2 * WIDTH, 2 * WIDTH, 3, padding=1)
        self.average = nn.AdaptiveAvgPool2d(2)
        self.fc = nn.Linear(8 * WIDTH, 10)

    def forward(self, x: Tensor) -> Tensor:
        """Return logits (n, 10)."""
        x = torch.relu(self.conv1(x))
        x = self.pool(torch.relu(self.conv2(x)))
        x = self.average(torch.relu(self.conv3(x)))
        logits: Tensor = self.fc(torch.flatten(x, 1))
        return logits


def dataset() -> TensorDataset:
    """Return images in -0.5..0.5 and their labels."""
    torch.manual_seed(0)
    return TensorDataset(torch.rand(SAMPLES, 3, 32, 32) - 0.5, torch.randint(10, (SAMPLES,)))
