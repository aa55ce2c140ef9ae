"""Data sets, completely in memory as bytes, and each rank's share of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import BatchSampler, DistributedSampler

from hpc_train.workload import WorkloadError
from hpc_train.workload.cifar10 import read_cifar
from hpc_train.workload.text_data import Tokens

DIGITS_TEST = 360
SYNTHETIC_TRAIN, SYNTHETIC_TEST = 4096, 512


@dataclass(frozen=True, slots=True, kw_only=True)
class Images:
    """uint8 images (n, channels, height, width), `white` the brightest value; int64 labels (n,)."""

    images: Tensor
    labels: Tensor
    white: float

    def __len__(self) -> int:
        return len(self.labels)

    def fetch(self, indexes: list[int], device: torch.device) -> tuple[Tensor, Tensor]:
        """Return float images in -0.5..0.5 and labels of `indexes`, on `device`."""
        images = self.images[indexes].to(device).float().div_(self.white).sub_(0.5)
        return images, self.labels[indexes].to(device)


def load_data(name: str) -> tuple[Images, Images]:
    """Return the training set and the test set: the same on every rank and for every seed.

    Raises:
        WorkloadError: the folder does not contain CIFAR-10, or scikit-learn is not installed.
    """
    if name == "digits":
        return _digits()
    if name == "synthetic":
        return _synthetic()
    images, labels, test_images, test_labels = read_cifar(Path(name))
    return _images(images, labels, 255.0), _images(test_images, test_labels, 255.0)


def batches(
    train: Images | Tokens, batch_size: int, place: tuple[int, int], seed: int, epoch: int
) -> Iterator[list[int]]:
    """Yield the indexes of each batch of a data-parallel rank in `epoch`, all of the same size.

    `place` is its number and the number of such ranks. The global batches, as sets, do not depend
    on the number of ranks.
    """
    rank, ranks = place
    sampler: DistributedSampler[int] = DistributedSampler(
        cast("Any", train),  # only its length is used
        num_replicas=ranks,
        rank=rank,
        seed=seed,
        drop_last=True,
    )
    sampler.set_epoch(epoch)
    yield from BatchSampler(cast("Iterable[int]", sampler), batch_size, drop_last=True)


def _digits() -> tuple[Images, Images]:
    try:
        from sklearn.datasets import load_digits  # type: ignore[import-untyped,unused-ignore]
    except ImportError as error:
        raise WorkloadError(
            "--data digits needs scikit-learn; install it, or use --data synthetic"
        ) from error
    pixels, labels = load_digits(return_X_y=True)
    order = np.random.RandomState(0).permutation(len(labels))
    images = pixels.astype(np.uint8).reshape(-1, 1, 8, 8)[order]
    return _split(images, labels[order].astype(np.int64), 16.0, DIGITS_TEST)


def _synthetic() -> tuple[Images, Images]:
    random = np.random.RandomState(0)
    labels = random.randint(0, 10, SYNTHETIC_TRAIN + SYNTHETIC_TEST)
    patterns = random.randint(64, 192, (10, 3, 32, 32))
    images = patterns[labels] + random.randint(-64, 64, (len(labels), 3, 32, 32))
    return _split(images.astype(np.uint8), labels.astype(np.int64), 255.0, SYNTHETIC_TEST)


def _split(images: Any, labels: Any, white: float, test: int) -> tuple[Images, Images]:
    return (
        _images(images[test:], labels[test:], white),
        _images(images[:test], labels[:test], white),
    )


def _images(images: Any, labels: Any, white: float) -> Images:
    return Images(images=torch.from_numpy(images), labels=torch.from_numpy(labels), white=white)
