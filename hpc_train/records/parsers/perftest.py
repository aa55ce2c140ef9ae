"""Tables of perftest: `ib_write_bw`, `ib_read_bw`, `ib_send_bw` and their `*_lat`.

| column | metric | unit | scope |
|---|---|---|---|
| `BW average[..]` | algbw | GB/s = 1e9 B/s | per rank |
| the same in both directions at once (`-b`) | algbw, variant `bidirectional` | GB/s | per rank |
| `BW peak[..]` | algbw, variant `peak`; 0.00 of a run by duration is omitted | GB/s | per rank |
| `t_avg[usec]` | latency | us | per rank |
| `t_min[usec]`, `99% percentile[usec]` and so on | latency, variant `min`, `p99` | us | per rank |

`#bytes` is the message_size. `MB/sec` and `MiB/sec` (the name in newer versions) both count
1,048,576 B; `Gb/sec` counts 1e9 bits. Each process measures its own link; both ends of a link print
the same values.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from hpc_train.model.record import Scope
from hpc_train.records.line import Line
from hpc_train.records.parsing.log_parser import Hit, TableState, Unreadable
from hpc_train.records.parsing.printed_numbers import number, scaled

_HEAD = re.compile(r"#bytes\s{1,20}#(?!repetitions)")
_TITLE = re.compile(r"[A-Z]\w{1,15} (?P<both>Bidirectional )?BW Test\b")
_COLUMN = re.compile(r"#\w{1,12}|tps average|(?:[\w.%]{1,12} )?[\w.%]{1,12}\[[^][\s]{1,12}\]")
_GBS = {"Gb/sec": 1e9 / 8 / 1e9, "MB/sec": 2**20 / 1e9, "MiB/sec": 2**20 / 1e9}
_LATENCIES = {
    "t_avg": "",
    "t_min": "min",
    "t_max": "max",
    "t_typical": "typical",
    "t_stdev": "stdev",
    "99% percentile": "p99",
    "99.9% percentile": "p99.9",
}
_WORD = re.compile(r"\d{1,20}(?:\.\d{0,10})?|-?nan|-?inf|N/A")
_SIZE = re.compile(r"\d{1,15}")


class Perftest:
    """Parser of successive tables."""

    title = "perftest (ib_write_bw, ib_read_lat and the like)"
    literals = (b"#bytes ", b" BW Test")
    sample = """\
 #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
 65536      5000             196.10             195.90               0.373650
 #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]
 2       1000          1.60           4.10         1.65               1.70
"""
    states: Mapping[str, Scope] = {"algbw": "per_rank", "latency": "per_rank"}

    def __init__(self) -> None:
        self._table = TableState()
        self._columns: tuple[tuple[str, str, float] | None, ...] = ()
        self._both = ""

    @property
    def wants_next(self) -> bool:
        """Whether rows may follow."""
        return self._table.wanted

    def read(self, line: Line) -> Iterator[Hit | Unreadable]:
        """Yield the values of a row."""
        text = line.text
        head = _HEAD.search(text)
        words = text.split()
        if title := _TITLE.search(text):
            self._both = "bidirectional" if title["both"] else ""
        elif head:
            self._columns = tuple(map(_column, _COLUMN.findall(text, head.start())))
            self._table.begin()
        elif not self.wants_next or not words or not _SIZE.fullmatch(words[0]):
            self._table.other()
        elif len(words) == len(self._columns) and all(map(_WORD.fullmatch, words)):
            self._table.begin()
            yield from self._row(words)
        elif all(map(_WORD.fullmatch, words)):
            self._table.other()
            yield Unreadable()

    def _row(self, words: list[str]) -> Iterator[Hit]:
        for column, word in zip(self._columns, words, strict=True):
            value = number(word) if column else None
            if column and value is not None and (value or column[1] != "peak"):
                metric, variant, scale = column
                size = int(words[0])
                value = scaled(value, scale)
                variant = "_".join(part for part in (self._both, variant) if part)
                yield Hit(metric, value, "per_rank", message_size=size, variant=variant)


def _column(name: str) -> tuple[str, str, float] | None:
    title, _, unit = name.removesuffix("]").partition("[")
    if unit == "usec" and title in _LATENCIES:
        return "latency", _LATENCIES[title], 1.0
    if unit in _GBS and title in ("BW peak", "BW average"):
        return "algbw", "peak" if title == "BW peak" else "", _GBS[unit]
    return None
