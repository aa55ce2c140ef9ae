"""Models of the reference trainer, each a sequence of layers that can be cut at any place.

Here: networks, their creation by name, and their division into stages.
Not here: how they are distributed; a model knows nothing of ranks.
"""

from collections import OrderedDict
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional

from hpc_train.jobs.strategies import GPT_SHAPES, parts_of
from hpc_train.trainer.models.gpt import TransformerBlock, make_gpt
from hpc_train.trainer.models.resnet import Bottleneck, make_resnet50

# Layers of which a model has many; the others come before and after them.
BLOCKS = (TransformerBlock, Bottleneck)


def make_model(
    name: str, *, channels: int, classes: int, width: int, dtype: torch.dtype
) -> nn.Sequential:
    """Return a model by its name; `channels` and `classes` are those of images.

    `width` is that of the CNN.
    """
    if name in GPT_SHAPES:
        return make_gpt(GPT_SHAPES[name]).to(dtype)
    if name == "resnet50":
        return make_resnet50(channels, classes).to(dtype)
    return make_cnn(channels, width, classes).to(dtype)


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


def mean_loss(output: Tensor, target: Tensor) -> Tensor:
    """Return the mean cross-entropy of logits (..., classes) and classes (...)."""
    logits = output.flatten(0, -2)
    if logits.element_size() < torch.float32.itemsize:
        logits = logits.float()
    return functional.cross_entropy(logits, target.flatten())


def cut(model: nn.Sequential, name: str, stages: int) -> list[nn.Sequential]:
    """Divide a model into consecutive stages; the names of its parameters stay.

    The stages differ by at most one part: a layer with parameters and those after it without.
    """
    parts: list[list[tuple[str, nn.Module]]] = []
    for child, layer in model.named_children():
        if not parts or next(layer.parameters(), None) is not None:
            parts.append([])
        parts[-1].append((child, layer))
    if len(parts) != parts_of(name):
        raise AssertionError(name, len(parts))
    bounds = [len(parts) * i // stages for i in range(stages + 1)]
    return [
        nn.Sequential(OrderedDict(layer for part in parts[low:high] for layer in part))
        for low, high in pairwise(bounds)
    ]
