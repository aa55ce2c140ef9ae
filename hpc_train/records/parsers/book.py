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

import math
import re
from collections.abc import Iterator
from functools import lru_cache
from operator import itemgetter

from hpc_train.records.parsers.base import Hit, LogText, Unreadable
from hpc_train.records.parsers.merge import Hits, in_order
from hpc_train.records.parsers.prefixes import line_head, peel

# What the lines of epochs and of the training have in common: saves a pass over the log.
_TIME = re.compile(rb"time: (\d{1,9}) seconds")
_EPOCH = re.compile(rb"Epoch \[(\d{1,9})/\d{1,9}\], Loss: ([-+.\w]{1,32}), \Z")
_TRAINING = b"Training "
_ACCURACY = re.compile(rb"Accuracy of the network on the \d{1,9} test images: ([\d.e-]{1,32}) %")
_STEPS = re.compile(rb"Steps: (\d{1,9})")
_WORKER = re.compile(rb"Worker (\d{1,7}) - $")
# Ranks that share a pipe write text and line end apart: `Steps: 98Steps: 98`.
_ONLY_STEPS = re.compile(rb"(?:Steps: \d{1,9})*")


class Book:
    """Parser of the book's lines."""

    literals: tuple[bytes, ...] = (
        b"Epoch [",
        b"Training time: ",
        b"Accuracy of the network on the ",
        b"Steps: ",
    )

    def parse(self, data: LogText, rank: int | None = None) -> Iterator[Hit | Unreadable]:
        """Return the values of the four kinds of line, in as few passes over the log as can be."""
        kinds = (_times, _accuracies, _steps)
        return map(itemgetter(1), in_order([kind(data, rank) for kind in kinds]))


PARSER = Book()


def _times(data: LogText, default: int | None) -> Hits:
    for match in _TIME.finditer(data):
        head = line_head(data, match.start())
        epoch = _EPOCH.search(head)
        if epoch:
            start, (number, text) = epoch.start(), epoch.groups()
            offset, step = match.start() - len(head) + start, int(number)
            rank, loss = _rank(head[:start], default), _finite(text)
            yield Hit(offset, "epoch_time", float(match[1]), "per_rank", step, rank)
            if loss is not None:
                yield Hit(offset, "loss", loss, "per_rank", step, rank)
        elif head.endswith(_TRAINING):
            offset, rank = match.start() - len(_TRAINING), _rank(head[: -len(_TRAINING)], default)
            yield Hit(offset, "time_to_train", float(match[1]), "per_rank", rank=rank)


def _accuracies(data: LogText, default: int | None) -> Hits:
    for match in _ACCURACY.finditer(data):
        percent = _finite(match[1])
        if percent is not None:
            rank = _rank(line_head(data, match.start()), default)
            yield Hit(match.start(), "accuracy", percent / 100, "global", rank=rank)


def _steps(data: LogText, default: int | None) -> Hits:
    for match in _STEPS.finditer(data):
        prefix = peel(line_head(data, match.start()))
        # `Total Steps: 5` and the like belong to other programs.
        if _ONLY_STEPS.fullmatch(prefix.rest):
            rank = default if prefix.rank is None else prefix.rank
            yield Hit(match.start(), "steps", float(match[1]), "per_rank", rank=rank)


@lru_cache(maxsize=1024)  # The workers have few names.
def _rank(head: bytes, default: int | None) -> int | None:
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
