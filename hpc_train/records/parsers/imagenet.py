"""PyTorch's ImageNet example and its variants: `Epoch: [0][ 10/5005]  Time 0.3 ( 0.4)  Loss ..`.

`Time` is the time of this iteration [s] (the mean over the epoch is in brackets). Each rank prints
its own time. apex's variant adds `Speed`, images/s of the whole job. ` * Acc@1 71.4` is the
accuracy over the validation set, in per cent.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from hpc_train.model.record import Scope
from hpc_train.records.line import Line
from hpc_train.records.parsing.log_parser import Hit, Unreadable
from hpc_train.records.parsing.printed_numbers import NUMBER, VALUE, number

# A number at the end of a line may be truncated.
_VALUE = rf"{VALUE}(?=\s)"
_PLACE = re.compile(r"Epoch: ?\[(\d{1,9})\] ?\[ *(\d{1,12})/(\d{1,12})\]")
_TIME = re.compile(rf"\]\s+(?:Batch )?Time:? +{_VALUE}")
_OTHERS: dict[str, tuple[re.Pattern[str], Scope]] = {
    "samples_per_second": (re.compile(rf"\sSpeed:? +{_VALUE}"), "global"),
    "loss": (re.compile(rf"\sLoss:? +{_VALUE}"), "per_rank"),
}
# It prints three decimals.
_WHOLE = rf"({NUMBER}(?=\s)|\d{{1,3}}\.\d{{3}}$)"
_ACCURACY = re.compile(rf"(?:^| )\* +(?:Acc|Prec)@1:? +{_WHOLE}|^Test: +Acc@1 {_WHOLE}")


class ImageNet:
    """Parser of the example's lines."""

    title = "PyTorch's ImageNet example, apex, torchvision's accuracy"
    literals = (b"]\tTime ", b"] Time ", b"]  Time ", b" Acc@1 ", b" Prec@1 ")
    sample = (
        "Epoch: [1][ 10/100]\tTime  0.213 ( 0.342)\tData  0.000 ( 0.100)\tSpeed 1201.9 (748.5)\t"
        "Loss 6.9012e+00 (6.9321e+00)\tAcc@1   0.39 (  0.20)\n"
        " * Acc@1 71.404 Acc@5 90.300\n"
    )
    states: Mapping[str, Scope] = {
        "step_time": "per_rank",
        "samples_per_second": "global",
        "loss": "per_rank",
        "accuracy": "global",
    }
    wants_next = False

    def read(self, line: Line) -> Iterator[Hit | Unreadable]:
        """Yield the iterations on a line, which may come from two ranks, or the accuracy."""
        text = line.text
        places = list(_PLACE.finditer(text))
        if not places:
            yield from _accuracy(text)
            return
        ends = [place.start() for place in places[1:]] + [len(text)]
        for place, end in zip(places, ends, strict=True):
            yield from _iteration(place, text[:end])


def _iteration(place: re.Match[str], text: str) -> Iterator[Hit | Unreadable]:
    time = _TIME.search(text, place.end() - 1)
    value = number(time[1]) if time else None
    if value is None:
        yield Unreadable()
        return
    epoch, done, total = (int(part) for part in place.groups())
    step = epoch * total + done
    yield Hit("step_time", value, "per_rank", step)
    for metric, (pattern, scope) in _OTHERS.items():
        found = pattern.search(text, place.end())
        value = number(found[1]) if found else None
        if value is not None:
            yield Hit(metric, value, scope, step)


def _accuracy(text: str) -> Iterator[Hit]:
    found = _ACCURACY.search(text)
    percent = number(found[1] or found[2]) if found else None
    if percent is not None:
        yield Hit("accuracy", percent / 100, "global")
