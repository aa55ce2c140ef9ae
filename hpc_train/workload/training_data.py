"""What every data set offers: samples by index as bytes, and their form on a device."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

Pair = tuple[Tensor, Tensor]


class TrainingData(Protocol):
    """`channels` are those of images, 0 for text; `classes` the number of values of a target."""

    @property
    def channels(self) -> int: ...

    @property
    def classes(self) -> int: ...

    def __len__(self) -> int: ...

    def __getitems__(self, indexes: list[int]) -> Pair:
        """Return inputs and targets of these samples, in the memory of the host."""
        ...

    def prepare(self, pair: Pair, device: torch.device, dtype: torch.dtype) -> Pair:
        """Return them on a device; images in the type of the parameters."""
        ...


def prepare_images(pair: Pair, white: float, device: torch.device, dtype: torch.dtype) -> Pair:
    """Return images in -0.5..0.5, and labels; `white` is the brightest value.

    On CUDA the channels are the last dimension in memory, as its tensor cores read them.
    """
    images, labels = (tensor.to(device, non_blocking=True) for tensor in pair)
    images = images.to(dtype).div_(white).sub_(0.5)
    if device.type == "cuda":
        images = images.contiguous(memory_format=torch.channels_last)
    return images, labels
