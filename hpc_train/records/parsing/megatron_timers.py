"""Times of the parts of a step [ms], as the timers of Megatron and DeepSpeed print them.

| line | scope | variant |
|---|---|---|
| `time (ms) \\| forward-compute: 306.62 \\| ...` | per rank | the name |
| `(min, max) time across ranks (ms):`, then `name ...: (1.20, 3.40)` | global | name min, max |
| `max time across ranks (ms):`, then `name ...: 3.40` | global | name max |
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from hpc_train.model.record import Scope
from hpc_train.records.parsing.log_parser import Hit
from hpc_train.records.parsing.printed_numbers import number, scaled

_HEAD = re.compile(r"(?:^|\s)time \(ms\) \|")
# Timers have two decimals: with fewer, the line was cut.
_ONE = re.compile(r"^\s*([\w/.-]{1,80}(?: [\w/.-]{1,20}){0,5}): (\d{1,15}\.\d\d)\s*")
_TABLE = re.compile(r"(?:^|\s)(\(min, max\)|max) time across ranks \(ms\):\s*$")
_ROW = re.compile(
    r"^\s+(?P<name>[\w/-]{1,80}) ?\.*: "
    r"(?:\((?P<least>\d{1,15}\.\d\d), (?P<most>\d{1,15}\.\d\d)\)|(?P<one>\d{1,15}\.\d\d))"
)


def phases(text: str, step: int | None) -> Iterator[Hit]:
    """Yield the parts that a `time (ms)` line names."""
    # A search for a literal costs a tenth of that for the pattern.
    head = _HEAD.search(text) if "time (ms) |" in text else None
    for part in text[head.end() :].split("|") if head else ():
        if match := _ONE.fullmatch(part):
            yield from _hit(match[2], match[1], step, "")


class Table:
    """The rows that follow `time across ranks`."""

    def __init__(self) -> None:
        self.open = False

    def start(self, text: str) -> None:
        """Open the table if the line is the head of one."""
        self.open = "time across ranks" in text and _TABLE.search(text) is not None

    def row(self, text: str, step: int | None) -> list[Hit]:
        """Return the values of a row; a line that is not a row closes the table."""
        match = _ROW.fullmatch(text)
        self.open = match is not None
        if match is None:
            return []
        name = match["name"]
        least, most = match["least"], match["most"] or match["one"]
        return [*_hit(least, name, step, " min"), *_hit(most, name, step, " max")]


def _hit(text: str | None, name: str, step: int | None, suffix: str) -> Iterator[Hit]:
    value = None if text is None else number(text)
    if value is not None:
        scope: Scope = "global" if suffix else "per_rank"
        yield Hit("phase_time", scaled(value, 1e-3), scope, step, variant=name + suffix)
