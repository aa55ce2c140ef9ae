"""Lines that the training scripts of *Accelerate Model Training with PyTorch 2.X* print.

| line | metric | unit | scope |
|---|---|---|---|
| `Worker R - Epoch [e/E], Loss: x, time: S seconds` | epoch_time, step = e | s | per rank |
| (the baseline prints no `Worker R - `) | loss of the last batch, step = e | 1 | per rank |
| `Training time: S seconds` | time_to_train | s | per rank |
| `Accuracy of the network on the N test images: P %` | accuracy, as a fraction | 1 | global |
| `Steps: N` | steps of one epoch | 1 | per rank |

All seconds are whole and truncated by the scripts: 0 means less than one second, and a value may
be too small by up to one second. Some of the scripts print the accuracy once per rank.
"""

from __future__ import annotations

import heapq
import math
import re
from collections.abc import Callable, Iterator
from operator import attrgetter

from hpc_train.records.parsers.base import Hit, LogText, Unreadable
from hpc_train.records.parsers.prefixes import line_head, peel

_EPOCH = re.compile(rb"Epoch \[(\d{1,9})/\d{1,9}\], Loss: ([-+.\w]{1,32}), time: (\d{1,9}) seconds")
_TRAINING = re.compile(rb"Training time: (\d{1,9}) seconds")
_ACCURACY = re.compile(rb"Accuracy of the network on the \d{1,9} test images: ([\d.e-]{1,32}) %")
_STEPS = re.compile(rb"Steps: (\d{1,9})")
_WORKER = re.compile(rb"Worker (\d{1,7}) - $")
# Ranks that share a pipe write text and line end apart: `Steps: 98Steps: 98`.
_ONLY_STEPS = re.compile(rb"(?:Steps: \d{1,9})*")

Rows = Iterator[Hit]


class Book:
    """Parser of the book's lines."""

    literals: tuple[bytes, ...] = (
        b"Epoch [",
        b"Training time: ",
        b"Accuracy of the network on the ",
        b"Steps: ",
    )

    def parse(self, data: LogText, rank: int | None = None) -> Iterator[Hit | Unreadable]:
        """Yield the values of the four kinds of line; one pass each, which `re` does fastest."""
        kinds: tuple[Callable[[LogText, int | None], Rows], ...] = (
            _epochs,
            _training_times,
            _accuracies,
            _steps,
        )
        yield from heapq.merge(*(kind(data, rank) for kind in kinds), key=attrgetter("offset"))


PARSER = Book()


def _epochs(data: LogText, default: int | None) -> Rows:
    for match in _EPOCH.finditer(data):
        offset, epoch = match.start(), int(match[1])
        rank = _rank(data, offset, default)
        yield Hit(offset, "epoch_time", float(match[3]), "per_rank", epoch, rank)
        loss = _finite(match[2])
        if loss is not None:
            yield Hit(offset, "loss", loss, "per_rank", epoch, rank)


def _training_times(data: LogText, default: int | None) -> Rows:
    for match in _TRAINING.finditer(data):
        rank = _rank(data, match.start(), default)
        yield Hit(match.start(), "time_to_train", float(match[1]), "per_rank", rank=rank)


def _accuracies(data: LogText, default: int | None) -> Rows:
    for match in _ACCURACY.finditer(data):
        percent = _finite(match[1])
        if percent is not None:
            rank = _rank(data, match.start(), default)
            yield Hit(match.start(), "accuracy", percent / 100, "global", rank=rank)


def _steps(data: LogText, default: int | None) -> Rows:
    for match in _STEPS.finditer(data):
        prefix = peel(line_head(data, match.start()))
        # `Total Steps: 5` and the like belong to other programs.
        if _ONLY_STEPS.fullmatch(prefix.rest):
            rank = default if prefix.rank is None else prefix.rank
            yield Hit(match.start(), "steps", float(match[1]), "per_rank", rank=rank)


def _rank(data: LogText, offset: int, default: int | None) -> int | None:
    head = line_head(data, offset)
    worker = _WORKER.search(head)
    if worker:
        return int(worker[1])
    stated = peel(head).rank
    return default if stated is None else stated


def _finite(raw: bytes) -> float | None:
    try:
        value = float(raw)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
