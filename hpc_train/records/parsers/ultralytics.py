"""Ultralytics YOLO, YOLOv5 to YOLO26: `1/100  2.31G  1.2 ..  640: 100%|###| 8/8 [00:12<00:00, ..]`.

| part | metric | unit | scope |
|---|---|---|---|
| time of an epoch's finished bar, divided by its iterations | step_time, mean | s | per rank |
| the same | epoch_time, without the validation | s | per rank |
| `100 epochs completed in 0.344 hours` | time_to_train, with validations | s | global |

Printed by rank 0. Only the finished bar is used; earlier states show smoothed rates. tqdm prints
whole seconds, Ultralytics' own bar tenths; a time that is less precise than 5 % is omitted. Memory
is omitted: its unit (10^9 or 2^30 B) differs by version, and the log does not show the unit. The
step counts iterations over all epochs; YOLOv5 counts epochs from 0, the others from 1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from hpc_train.model.record import Scope
from hpc_train.records.line import Line
from hpc_train.records.parsing.log_parser import Hit
from hpc_train.records.parsing.printed_numbers import scaled

_N = r"(?:\d{1,9}(?:\.\d{0,9})?(?:e[+-]\d\d)?|nan|inf)"
_EPOCH = re.compile(
    r"(?:^|\s)(?P<epoch>\d{1,6})/(?P<last>\d{1,6}) {2,20}[\d.]{1,8}[MG]B?"
    rf"(?: {{1,20}}{_N}){{2,12}}: {{1,4}}100%"
)
_TQDM = re.compile(
    r"(?:\|[^|]{0,400}\|)? {0,4}(?P<done>\d{1,9})/(?P<total>\d{1,9}) \[(?P<time>[\d:]{4,12})<"
    r"[^,\]]{0,12}(?:, {1,4}(?P<rate>\d{1,9}\.\d{1,4})(?P<of>it/s|s/it))?"
)
# The remainder of a longer text may follow the time.
_OWN = re.compile(
    r" [━─╸]{4,40} (?P<done>\d{1,9})/(?P<total>\d{1,9}) "
    r"(?:(?P<rate>\d{1,9}\.\d{1,4})(?P<of>it/s|s/it) |[\d.]{1,12}K?(?:it/s|s/it) )?"
    r"(?P<time>\d{1,2}\.\d(?=s)|(?:\d{1,3}:)?\d{1,2}:\d\d)"
)
_END = re.compile(r"^\s{0,8}\d{1,6} epochs completed in (?P<hours>\d{1,6}\.\d{3}) hours\.?")
_PRECISE = 10
"""The smallest time, in units of its last digit, that is precise to 5 %."""


class Ultralytics:
    """Parser of the tables that the trainers print; remembers the last epoch that was yielded."""

    title = "Ultralytics YOLO, YOLOv5"
    literals = (b": 100%", b" epochs completed in ")
    sample = (
        "      1/100      2.31G      1.215      1.104     0.9821         12        640: 100%"
        "|##########| 110/110 [00:22<00:00,  4.98it/s]\n"
        "100 epochs completed in 0.344 hours.\n"
    )
    states: Mapping[str, Scope] = {
        "step_time": "per_rank",
        "epoch_time": "per_rank",
        "time_to_train": "global",
    }
    wants_next = False

    def __init__(self) -> None:
        self._stated: tuple[str, str, str] | None = None
        self._first = 1

    def read(self, line: Line) -> Iterator[Hit]:
        """Yield the mean of an epoch, from the first drawing of its finished bar."""
        epoch = _EPOCH.search(line.text)
        if epoch is None:
            yield from self._end(line.text)
            return
        bar = _TQDM.match(line.text, epoch.end()) or _OWN.match(line.text, epoch.end())
        if bar is None or bar["done"] != bar["total"] or bar["total"] == "0":
            return
        stated = (epoch["epoch"], epoch["last"], bar["total"])
        took = _seconds(bar["time"])
        shown = bar.groupdict()
        # tqdm cuts the time to whole seconds, and states the rate of the whole bar at its end.
        if (
            took is not None
            and "." not in bar["time"]
            and shown["rate"]
            and float(shown["rate"]) > 0
        ):
            rate = float(shown["rate"])
            precise = int(bar["total"]) * (rate if shown["of"] == "s/it" else 1 / rate)
            took = precise if took <= precise < took + 1 else took
        if stated == self._stated or took is None:
            return
        self._stated = stated
        iterations, number = int(bar["total"]), int(epoch["epoch"])
        self._first = min(self._first, number)
        step = (number + 1 - self._first) * iterations
        yield Hit("step_time", took / iterations, "per_rank", step, steps=iterations)
        yield Hit("epoch_time", took, "per_rank", number)

    def _end(self, text: str) -> Iterator[Hit]:
        end = _END.search(text)
        if end is None:
            return
        self._stated = None
        if float(end["hours"]) * 1000 >= _PRECISE:
            yield Hit("time_to_train", scaled(float(end["hours"]), 3600.0), "global")


def _seconds(text: str) -> float | None:
    if "." in text:
        return float(text) if float(text) * 10 >= _PRECISE else None
    parts = [int(part) for part in text.split(":")]
    whole = sum(part * 60**place for place, part in enumerate(reversed(parts)))
    return float(whole) if whole >= _PRECISE else None
