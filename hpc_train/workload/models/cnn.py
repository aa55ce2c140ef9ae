"""The CNN of the reference trainer."""

from __future__ import annotations

from torch import nn


def make_cnn(channels: int, width: int, classes: int) -> nn.Sequential:
    """Return a small CNN: float images (n, channels, h, w) of any size to logits (n, classes).

    No batch normalisation: its statistics are those of one rank's batch, so the result would depend
    on the number of ranks at the same global batch.
    """
    wide = 2 * width
    return nn.Sequential(
        nn.Conv2d(channels, width, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(width, wide, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(wide, wide, 3, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(2),
        nn.Flatten(),
        nn.Linear(4 * wide, classes),
    )
