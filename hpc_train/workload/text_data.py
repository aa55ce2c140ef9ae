"""Text as bytes, one token each, in samples of a fixed length."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from hpc_train.workload import WorkloadError

SYNTHETIC_SAMPLES = 4608
TEST_SHARE = 9  # one sample of nine
_SUCCESSORS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """uint8 samples (n, length + 1): a sample and, shifted by one, its targets."""

    samples: Tensor

    def __len__(self) -> int:
        return len(self.samples)

    def fetch(self, indexes: list[int], device: torch.device) -> tuple[Tensor, Tensor]:
        """Return inputs and targets (n, length), int64, on `device`."""
        chosen = self.samples[indexes].to(device).long()
        return chosen[:, :-1], chosen[:, 1:]


def load_text(name: str, length: int) -> tuple[Tokens, Tokens]:
    """Return the training set and the test set of a file, or of `synthetic` text.

    Raises:
        WorkloadError: the file cannot be read or is too short.
    """
    check_text(name)
    content = _synthetic(length) if name == "synthetic" else _bytes(Path(name))
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
    if name != "synthetic" and not Path(name).is_file():
        raise WorkloadError(f"--data {name}: a GPT needs text; use synthetic or the path of a file")


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
