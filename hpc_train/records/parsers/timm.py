"""timm's train.py: `Train: 0 [ 50/1251 (  4%)]  Loss: ..  Time: 0.21s, 4800.1/s  (..)  LR: ..`.

The time is that of this iteration on the printing rank [s]; the rate is images/s of the whole job.
The means over the epoch are in brackets. The last line of a test contains the accuracy over the
whole test set, in per cent.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from hpc_train.model.record import Scope
from hpc_train.records.line import Line
from hpc_train.records.parsing.log_parser import Hit, Unreadable
from hpc_train.records.parsing.printed_numbers import VALUE, number

# A number at the end of a line may be truncated.
_TRAIN = re.compile(
    r"Train: \[?(\d{1,9})(?:/\d{1,9}\])? \[ *(\d{1,12})/(\d{1,12})(?: \( *\d{1,3}%\))?\]"
)
_TIME = re.compile(rf"\sTime: +{VALUE}s, +{VALUE}/s")
_LOSS = re.compile(rf"\sLoss: +{VALUE}\s")
_RATE = re.compile(rf"\sLR: +{VALUE}\s")
_TEST = re.compile(
    rf"Test: \[ *(\d{{1,12}})/(\d{{1,12}})\] .{{0,200}}?Acc@1: +{VALUE} +\( *{VALUE}\)"
)


class Timm:
    """Parser of timm's lines."""

    title = "timm (pytorch-image-models)"
    literals = (b"Train: ", b"  Acc@1: ")
    sample = (
        "Train: 1 [  50/1251 (  4%)]  Loss: 6.91 (6.93)  Time: 0.213s, 4807.51/s  "
        "(0.342s, 2994.15/s)  LR: 1.000e-05  Data: 0.010 (0.120)\n"
        "Test: [  48/48]  Time: 0.10 (0.20)  Loss:  1.2 ( 1.3)  Acc@1: 75.0 ( 71.4)  "
        "Acc@5: 92.0 ( 90.3)\n"
    )
    states: Mapping[str, Scope] = {
        "step_time": "per_rank",
        "samples_per_second": "global",
        "loss": "per_rank",
        "learning_rate": "global",
        "accuracy": "global",
    }
    wants_next = False

    def read(self, line: Line) -> Iterator[Hit | Unreadable]:
        """Yield an iteration, or the accuracy at the end of a test."""
        text = line.text
        place = _TRAIN.search(text)
        if place is None:
            yield from _accuracy(text)
            return
        time = _TIME.search(text, place.end())
        if time is None:
            yield Unreadable()
            return
        epoch, done, total = (int(part) for part in place.groups())
        found = {
            "step_time": time[1],
            "samples_per_second": time[2],
            "loss": _group(_LOSS.search(text)),
            "learning_rate": _group(_RATE.search(text)),
        }
        for metric, stated in found.items():
            value = number(stated)
            if value is not None:
                yield Hit(metric, value, self.states[metric], epoch * total + done)


def _group(match: re.Match[str] | None) -> str:
    return match[1] if match else ""


def _accuracy(text: str) -> Iterator[Hit]:
    test = _TEST.search(text)
    percent = number(test[4]) if test and test[1] == test[2] else None
    if percent is not None:
        yield Hit("accuracy", percent / 100, "global")
