"""Tables of `torch-dist-bench.py` and the newer `all_reduce_bench.py` (S. Bekman).

| line | metric | unit | scope |
|---|---|---|---|
| `The average bandwidth .. over 8 ranks (..)` | world_size | 1 | global |
| column `busbw`, `algbw` | busbw, algbw | GB/s = 1e9 B/s | global |
| column `latency median`, `p99`, `mean` | latency, variant `median`, .. | us | global |
| column `all_gather busbw`, `all_gather median` | busbw, latency, variant `all_gather` | | global |

The first cell of a row, `32KiB`, is the message_size. The time of a call is the time of its slowest
rank. A table of single trials has no such cell: its payload is in a line above the table.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from hpc_train.model.record import Scope
from hpc_train.records.line import Line
from hpc_train.records.parsing.log_parser import Hit, TableState
from hpc_train.records.parsing.printed_numbers import number

_POWERS = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40, "P": 50}
_SIZE = re.compile(r"(\d{1,6}(?:\.\d{1,6})?)([KMGTP]?)i?B")
_TITLE = re.compile(
    r"The (?:average|(?P<payload>[\d.]{1,12}GiB) payload) bandwidth\b.{1,80} over "
    r"(?P<ranks>\d{1,7}) ranks"
)
_HEAD = re.compile(r"\|\s{0,20}(?:payload|busbw)\s{0,20}\|")
_CELL = re.compile(r"(\d{1,9}(?:\.\d{1,6})?)(?:GBps|us)?")
_COLUMNS = {
    "busbw": ("busbw", ""),
    "algbw": ("algbw", ""),
    "latency median": ("latency", "median"),
    "p99": ("latency", "p99"),
    "mean": ("latency", "mean"),
}
_NAMED = re.compile(r"([a-z_]{3,24}) (busbw|median)")


class TorchDistBench:
    """Parser of successive tables."""

    title = "torch-dist-bench.py of *Machine Learning Engineering*"
    literals = (
        b" bandwidth of ",
        b"|    busbw   |",
        b"| payload | ",
        b" bandwidth and the per-call ",
    )
    sample = """\
The average bandwidth and the per-call latency of all_reduce over 8 ranks (5 warmups / 20 trials):
| payload |    busbw   |    algbw   | latency median |
| ------: | ---------: | ---------: | -------------: |
|   32KiB |   1.20GBps |   0.69GBps |         27.3us |
"""
    states: Mapping[str, Scope] = dict.fromkeys(
        ("world_size", "busbw", "algbw", "latency"), "global"
    )

    def __init__(self) -> None:
        self._table = TableState()
        self._names: list[str] = []
        self._size: int | None = None

    @property
    def wants_next(self) -> bool:
        """Whether rows may follow."""
        return self._table.wanted

    def read(self, line: Line) -> Iterator[Hit]:
        """Yield the values of a title or a row."""
        text = line.text
        if title := _TITLE.search(text):
            self._table.begin()
            self._names, self._size = [], _bytes(title["payload"] or "")
            yield Hit("world_size", float(title["ranks"]), "global")
        elif head := _HEAD.search(text):
            self._table.begin()
            self._names = _cells(text[head.start() :])
        elif self._names and "|" in text and self.wants_next:
            yield from self._row(_cells(text[text.index("|") :]))
        else:
            self._table.other()

    def _row(self, cells: list[str]) -> Iterator[Hit]:
        if len(cells) != len(self._names):
            self._table.other()
            return
        self._table.begin()
        size = _bytes(cells[0]) if self._names[0] == "payload" else self._size
        for name, cell in zip(self._names, cells, strict=True):
            column, found = _column(name), _CELL.fullmatch(cell)
            value = number(found[1]) if column and found else None
            if column and value is not None and size is not None:
                yield Hit(column[0], value, "global", message_size=size, variant=column[1])


def _cells(text: str) -> list[str]:
    return [cell.strip() for cell in text.strip().strip("|").split("|")]


def _bytes(text: str) -> int | None:
    size = _SIZE.fullmatch(text)
    return None if size is None else round(float(size[1]) * 2 ** _POWERS[size[2]])


def _column(name: str) -> tuple[str, str] | None:
    named = _NAMED.fullmatch(name)
    if name in _COLUMNS or named is None:
        return _COLUMNS.get(name)
    return "latency" if named[2] == "median" else "busbw", named[1]
