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

import re
from collections.abc import Iterator, Mapping

from hpc_train.model.record import Scope
from hpc_train.records.line import Line
from hpc_train.records.parsers.base import OF_LINE, Hit
from hpc_train.records.parsers.number import number

_LINE = re.compile(
    r"(?:Worker (?P<rank>\d{1,7}) - )?(?:"
    r"Epoch \[(?P<epoch>\d{1,9})/\d{1,9}\], Loss: (?P<loss>[-+.\w]{1,32}), "
    r"time: (?P<epoch_time>\d{1,9}) seconds"
    r"|Training time: (?P<time_to_train>\d{1,9}) seconds"
    r"|Accuracy of the network on the \d{1,9} test images: (?P<accuracy>[\d.e-]{1,32}) %)"
)
# Ranks that share a pipe write text and line end apart: `Steps: 98Steps: 98`. But `Total Steps: 5`
# and the like belong to other programs.
_STEPS = re.compile(r"Steps: (\d{1,9})")
_ONLY_STEPS = re.compile(r"(?:Steps: \d{1,9})+")


class Book:
    """Parser of the book's lines."""

    title = "Scripts of *Accelerate Model Training with PyTorch 2.X*"
    literals = (
        b"Epoch [",
        b"Training time: ",
        b"Accuracy of the network on the ",
        b"Steps: ",
    )
    sample = "Worker 0 - Epoch [1/25], Loss: 1.2345, time: 12 seconds"
    states: Mapping[str, Scope] = {"epoch_time": "per_rank", "loss": "per_rank"}
    wants_next = False

    def read(self, line: Line) -> Iterator[Hit]:
        """Yield the values of every statement on the line."""
        text = line.text
        if _ONLY_STEPS.match(text):
            for steps in _STEPS.finditer(text):
                yield Hit("steps", float(steps[1]), "per_rank")
        for match in _LINE.finditer(text):
            yield from _hits(match)


def _hits(match: re.Match[str]) -> Iterator[Hit]:
    found = match.groupdict()
    rank = OF_LINE if found["rank"] is None else int(found["rank"])
    step = None if found["epoch"] is None else int(found["epoch"])
    for metric in ("epoch_time", "loss", "time_to_train"):
        value = None if found[metric] is None else number(found[metric])
        if value is not None:
            yield Hit(metric, value, "per_rank", step, rank)
    percent = None if found["accuracy"] is None else number(found["accuracy"])
    if percent is not None:
        yield Hit("accuracy", percent / 100, "global", None, rank)
