"""Lines that the training scripts of *Accelerate Model Training with PyTorch 2.X* print.

| line | metric | unit | scope |
|---|---|---|---|
| `Worker R - Epoch [e/E], Loss: x, time: S seconds` | epoch_time, step = e | s | per rank |
| (the baseline prints no `Worker R - `) | loss of the last batch, step = e | 1 | per rank |
| `Training time: S seconds` | time_to_train | s | per rank |
| `Accuracy of the network on the N test images: P %` | accuracy, as a fraction | 1 | global |
| `Steps: N` | steps of one epoch | 1 | per rank |

The book's scripts truncate times to whole seconds: 0 means less than one second and is refused as a
time, and a value may be too small by up to one second. Seconds with decimals are also read.
Some of the scripts print the accuracy once per rank.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from hpc_train.model.record import Scope
from hpc_train.records.line import Line
from hpc_train.records.parsing.log_parser import OF_LINE, Hit
from hpc_train.records.parsing.printed_numbers import number

_LINE = re.compile(
    r"(?:Worker (?P<rank>\d{1,7}) - )?(?:"
    r"Epoch \[(?P<epoch>\d{1,9})/\d{1,9}\], Loss: (?P<loss>[-+.\w]{1,32}), "
    r"time: (?P<epoch_time>\d{1,9}(?:\.\d{1,9})?) seconds"
    r"|Training time: (?P<time_to_train>\d{1,9}(?:\.\d{1,9})?) seconds"
    r"|Accuracy of the network on the \d{1,9} test images: (?P<accuracy>[\d.e-]{1,32}) %)"
)
# Ranks that share a pipe write text and line end separately: `Steps: 98Steps: 98`. But a line such
# as `Total Steps: 5` belongs to another program.
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

    def read(self, line: Line) -> list[Hit]:
        """Return the values of every statement on the line."""
        text = line.text
        hits: list[Hit] = []
        if _ONLY_STEPS.match(text):
            hits += [Hit("steps", float(found), "per_rank") for found in _STEPS.findall(text)]
        for match in _LINE.finditer(text):
            hits += _hits(match)
        return hits


def _hits(match: re.Match[str]) -> Iterator[Hit]:
    who, epoch, loss, epoch_time, time_to_train, accuracy = match.groups()
    rank = OF_LINE if who is None else int(who)
    step = None if epoch is None else int(epoch)
    if epoch_time is not None:
        yield Hit("epoch_time", float(epoch_time), "per_rank", step, rank)
    last = None if loss is None else number(loss)
    if last is not None:
        yield Hit("loss", last, "per_rank", step, rank)
    if time_to_train is not None:
        yield Hit("time_to_train", float(time_to_train), "per_rank", step, rank)
    percent = None if accuracy is None else number(accuracy)
    if percent is not None:
        yield Hit("accuracy", percent / 100, "global", None, rank)
