"""Training and test sets: text as bytes, one token each, in fixed lengths; images."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hpc_train.trainer import WorkloadError

SYNTHETIC_SAMPLES = 4608
TEST_SHARE = 9  # one sample of nine
_SUCCESSORS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """uint8 samples (n, length + 1): a sample and, shifted by one, its targets.

    As of each set, `channels` are those of images, `classes` the number of values of a target.
    """

    samples: Tensor
    channels: int = 0
    classes: int = 256

    @property
    def length(self) -> int:
        """Tokens of a sample."""
        return self.samples.shape[1] - 1

    def __len__(self) -> int:
        return len(self.samples)

    def __getitems__(self, indexes: list[int]) -> Pair:
        """Return inputs and targets (n, length), as bytes."""
        chosen = self.samples[indexes]
        return chosen[:, :-1], chosen[:, 1:]

    def prepare(self, pair: Pair, device: torch.device, dtype: torch.dtype) -> Pair:
        """Return both as int64; tokens have no other type."""
        inputs, targets = (tensor.to(device, non_blocking=True).long() for tensor in pair)
        return inputs, targets


def load_text(name: str, length: int) -> tuple[Tokens, Tokens]:
    """Return the training set and the test set of a file, or of `synthetic` text.

    Raises:
        WorkloadError: the file cannot be read or is too short.
    """
    try:
        content = (
            _synthetic_text(length)
            if name == "synthetic"
            else torch.frombuffer(bytearray(Path(name).read_bytes()), dtype=torch.uint8)
        )
    except (OSError, ValueError) as error:
        raise WorkloadError(f"--data {name}: {error}") from error
    count = len(content) // (length + 1)
    if count < TEST_SHARE:
        least = TEST_SHARE * (length + 1)
        raise WorkloadError(f"--data {name}: {len(content)} bytes; use a file of {least} or more")
    samples = content[: count * (length + 1)].view(count, length + 1)
    test = count // TEST_SHARE
    return Tokens(samples=samples[test:]), Tokens(samples=samples[:test])


def _synthetic_text(length: int) -> Tensor:
    """Return text in which each byte has four equally likely successors: loss at best log(4)."""
    random = torch.Generator().manual_seed(0)
    successors = torch.randint(256, (256, _SUCCESSORS), generator=random, dtype=torch.uint8)
    samples = torch.zeros(SYNTHETIC_SAMPLES, length + 1, dtype=torch.uint8)
    samples[:, 0] = torch.randint(256, (SYNTHETIC_SAMPLES,), generator=random)
    choices = torch.randint(_SUCCESSORS, samples.shape, generator=random)
    for place in range(length):
        samples[:, place + 1] = successors[samples[:, place].long(), choices[:, place]]
    return samples.flatten()


Pair = tuple[Tensor, Tensor]
DIGITS_TEST = 360
SYNTHETIC_TRAIN, SYNTHETIC_TEST = 4096, 512


class _Prepared:
    """Images of 0 to `white`, the brightest value."""

    white: float

    def prepare(self, pair: Pair, device: torch.device, dtype: torch.dtype) -> Pair:
        """Return images in -0.5..0.5, and labels."""
        images, labels = (tensor.to(device, non_blocking=True) for tensor in pair)
        return images.to(dtype).div_(self.white).sub_(0.5), labels


@dataclass(frozen=True, kw_only=True)
class Images(_Prepared):
    """uint8 images (n, channels, height, width), int64 labels (n,)."""

    images: Tensor
    labels: Tensor
    white: float
    classes: int = 10

    @property
    def channels(self) -> int:
        """Colours."""
        return self.images.shape[1]

    def __len__(self) -> int:
        return len(self.labels)

    def __getitems__(self, indexes: list[int]) -> Pair:
        """Return images and labels, as they are stored."""
        return self.images[indexes], self.labels[indexes]

    def halves(self, test: int) -> tuple[Images, Images]:
        """Return all but the first `test` images, and those."""
        train, tested = (
            replace(self, images=self.images[part], labels=self.labels[part])
            for part in (slice(test, None), slice(test))
        )
        return train, tested


def load_data(name: str) -> tuple[TrainingData, TrainingData]:
    """Return `digits`, `synthetic` or `synthetic-imagenet`: a training set and a test set.

    They are the same on every rank and for every seed.

    Raises:
        WorkloadError: scikit-learn is not installed.
    """
    if name == "digits":
        return _digits()
    if name == "synthetic":
        random = np.random.RandomState(0)
        labels = random.randint(0, 10, SYNTHETIC_TRAIN + SYNTHETIC_TEST)
        patterns = random.randint(64, 192, (10, 3, 32, 32))
        images = patterns[labels] + random.randint(-64, 64, (len(labels), 3, 32, 32))
        whole = _images(images.astype(np.uint8), labels.astype(np.int64), 255.0)
        return whole.halves(SYNTHETIC_TEST)
    test = SyntheticImages(first=0, count=_IMAGENET_TEST)
    return SyntheticImages(first=_IMAGENET_TEST, count=_IMAGENET_TRAIN), test


def _digits() -> tuple[Images, Images]:
    """Return the digits of scikit-learn's `load_digits`: rows of 64 pixels, 0..16, and a label."""
    # Without the import of scikit-learn, which would add a second to each rank.
    package = find_spec("sklearn")
    if package is None or package.origin is None:
        raise WorkloadError("--data digits needs scikit-learn; install it, or use --data synthetic")
    file = Path(package.origin).with_name("datasets") / "data/digits.csv.gz"
    rows = np.loadtxt(file, delimiter=",", dtype=np.uint8)
    rows = rows[np.random.RandomState(0).permutation(len(rows))]
    images = rows[:, :-1].reshape(-1, 1, 8, 8)
    return _images(images, rows[:, -1].astype(np.int64), 16.0).halves(DIGITS_TEST)


def _images(images: Any, labels: Any, white: float) -> Images:
    return Images(images=torch.from_numpy(images), labels=torch.from_numpy(labels), white=white)


CLASSES, CHANNELS, SIZE = 1000, 3, 224
_IMAGENET_TRAIN, _IMAGENET_TEST = 1_281_167, 512  # the first as many as ImageNet has
_PATCH = 32
_NOISE = 1 << 20


@dataclass(frozen=True, kw_only=True)
class SyntheticImages(_Prepared):
    """`count` images from number `first` on; the same number is always the same image."""

    first: int
    count: int
    channels: int = CHANNELS
    classes: int = CLASSES
    white: float = 255.0
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


TrainingData = Tokens | Images | SyntheticImages


def _bytes(seed: int, *shape: int) -> Tensor:
    random = torch.Generator().manual_seed(seed)
    return torch.randint(256, shape, generator=random, dtype=torch.uint8)
