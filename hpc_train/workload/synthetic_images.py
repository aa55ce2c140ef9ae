"""Images of the shape of ImageNet, made when they are read: 1000 patterns, and noise."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from hpc_train.workload.training_data import Pair, prepare_images

CLASSES, CHANNELS, SIZE = 1000, 3, 224
TRAIN = 1_281_167  # as many as ImageNet has
TEST = 512
_PATCH = 32
_NOISE = 1 << 20


@dataclass(frozen=True, kw_only=True)
class SyntheticImages:
    """`count` images from number `first` on; the same number is always the same image."""

    first: int
    count: int
    channels: int = CHANNELS
    classes: int = CLASSES
    patterns: Tensor = field(default_factory=lambda: _bytes(0, CLASSES, CHANNELS, 7, 7))
    noise: Tensor = field(default_factory=lambda: _bytes(1, _NOISE))

    def __len__(self) -> int:
        return self.count

    def __getitems__(self, indexes: list[int]) -> Pair:
        """Return uint8 images (n, 3, 224, 224) and int64 labels (n,)."""
        numbers = torch.tensor(indexes, dtype=torch.int64) + self.first
        labels = numbers * 7919 % CLASSES  # a prime, so that neighbours differ
        large = self.patterns[labels].repeat_interleave(_PATCH, 2).repeat_interleave(_PATCH, 3)
        size = CHANNELS * SIZE * SIZE
        starts = (numbers * 104_729 % (_NOISE - size)).tolist()
        noise = torch.stack([self.noise[start : start + size] for start in starts])
        return large // 2 + noise.view_as(large) // 2, labels

    def prepare(self, pair: Pair, device: torch.device, dtype: torch.dtype) -> Pair:
        """Return images in -0.5..0.5, and labels."""
        return prepare_images(pair, 255.0, device, dtype)


def synthetic_imagenet() -> tuple[SyntheticImages, SyntheticImages]:
    """Return the training set and the test set."""
    return SyntheticImages(first=TEST, count=TRAIN), SyntheticImages(first=0, count=TEST)


def _bytes(seed: int, *shape: int) -> Tensor:
    random = torch.Generator().manual_seed(seed)
    return torch.randint(256, shape, generator=random, dtype=torch.uint8)
