"""Text as bytes, one token each, in samples of a fixed length."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from hpc_train.base.data_folders import page_text, page_titles
from hpc_train.base.errors import HpcTrainError
from hpc_train.trainer import WorkloadError
from hpc_train.trainer.datasets import Pair

DOCS = "docs"
SYNTHETIC_SAMPLES = 4608
TEST_SHARE = 9  # one sample of nine
_SUCCESSORS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """uint8 samples (n, length + 1): a sample and, shifted by one, its targets."""

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
    """Return the training set and the test set of a file, of `docs`, or of `synthetic` text.

    Raises:
        WorkloadError: the file cannot be read or is too short.
    """
    check_text(name)
    content = _content(name, length)
    count = len(content) // (length + 1)
    if count < TEST_SHARE:
        least = TEST_SHARE * (length + 1)
        raise WorkloadError(f"--data {name}: {len(content)} bytes; use a file of {least} or more")
    samples = content[: count * (length + 1)].view(count, length + 1)
    test = count // TEST_SHARE
    return Tokens(samples=samples[test:]), Tokens(samples=samples[:test])


def check_text(name: str) -> None:
    """Check that a GPT can be trained on this data.

    Raises:
        WorkloadError: it is no file.
    """
    if name not in ("synthetic", DOCS) and not Path(name).is_file():
        raise WorkloadError(
            f"--data {name}: a GPT needs text; use synthetic, {DOCS} or the path of a file"
        )


def _content(name: str, length: int) -> Tensor:
    if name == "synthetic":
        return _synthetic(length)
    return _documentation() if name == DOCS else _bytes(Path(name))


def _documentation() -> Tensor:
    """Return the pages of this package's documentation, half a million bytes of English."""
    try:
        text = "".join(page_text(name) for name in page_titles())
    except HpcTrainError as error:
        raise WorkloadError(f"--data {DOCS}: {error}") from error
    return torch.frombuffer(bytearray(text.encode()), dtype=torch.uint8)


def _bytes(file: Path) -> Tensor:
    try:
        return torch.frombuffer(bytearray(file.read_bytes()), dtype=torch.uint8)
    except (OSError, ValueError) as error:
        raise WorkloadError(f"--data {file}: {error}") from error


def _synthetic(length: int) -> Tensor:
    """Return text in which each byte has four equally likely successors: loss at best log(4)."""
    random = torch.Generator().manual_seed(0)
    successors = torch.randint(256, (256, _SUCCESSORS), generator=random, dtype=torch.uint8)
    samples = torch.zeros(SYNTHETIC_SAMPLES, length + 1, dtype=torch.uint8)
    samples[:, 0] = torch.randint(256, (SYNTHETIC_SAMPLES,), generator=random)
    choices = torch.randint(_SUCCESSORS, samples.shape, generator=random)
    for place in range(length):
        samples[:, place + 1] = successors[samples[:, place].long(), choices[:, place]]
    return samples.flatten()
