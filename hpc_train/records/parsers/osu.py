"""Tables of the OSU micro-benchmarks, versions 2 to 7: `# OSU MPI Bandwidth Test v5.6.2`.

| column | metric | unit | scope |
|---|---|---|---|
| `Bandwidth (MB/s)`, `MB/s` (1e6 B/s) | algbw | GB/s | global |
| `Latency (us)`, `Avg Latency(us)` | latency | us | global |
| `Min Latency(us)`, `Max Latency(us)` | latency, variant `min`, `max` | us | global |
| `Overall(us)`, `Pure Comm.(us)` | latency, variant `overall`, `pure` | us | global |
| `P99 Tail Lat(us)`, `P99 Tail BW(MB/s)` | latency or algbw, variant `p99` | us, GB/s | global |

`Size` is the message_size. The bandwidth of a pair in both directions has the variant
`bidirectional`, that of many pairs together (`osu_mbw_mr`) the variant `pairs`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from hpc_train.model.record import Scope
from hpc_train.records.line import Line
from hpc_train.records.parsing.log_parser import Hit, TableState, Unreadable
from hpc_train.records.parsing.printed_numbers import number, scaled

_TITLE = re.compile(r"(?:^|# ?)OSU [A-Z][^\n]{0,60}\b(?:Test|Benchmark)\b")
_COLUMN = re.compile(
    r"P\d{1,3} Tail (?:Lat|BW)\((?:us|MB/s)\)|Transmit Size"
    r"|(?:(?!Size )[A-Z][A-Za-z_.]{0,15} )?[A-Z][A-Za-z_.]{0,15} ?\((?:us|MB/s|%)\)"
    r"|MB/s|Messages/s|Size|Iterations|Validation"
)
_HEAD = re.compile(
    r"#?\s{0,4}(?:Size\s|(?:Avg )?Latency ?\(us\)|Overall ?\(us\)|Bandwidth \(MB/s\))"
)
_NAMED = re.compile(
    r"(?P<tail>P\d{1,3}) Tail|(?P<kind>Min|Max|Overall|Pure)?[ A-Za-z]{0,40}?"
    r"(?P<plain>Latency|Comm|Bandwidth|MB/s|\(us\))"
)
_WORD = re.compile(r"\d[\d,]{0,20}(?:\.\d{0,10})?(?:[eE][-+]?\d{1,3})?|-?nan|-?inf|Pass|Fail|-")
_SIZE = re.compile(r"\d{1,15}")


class Osu:
    """Parser of successive tables."""

    title = "OSU micro-benchmarks"
    literals = (b"OSU MPI", b"# OSU ", b"# Size", b"Latency(us)", b"Bandwidth (MB/s)")
    sample = """\
# OSU MPI Bandwidth Test v7.4
# Size      Bandwidth (MB/s)
1048576             12000.00
# OSU MPI-CUDA Allreduce Latency Test v7.4
# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations
1048576               120.50            119.00            122.00         100
"""
    states: Mapping[str, Scope] = {"algbw": "global", "latency": "global"}

    def __init__(self) -> None:
        self._table = TableState()
        self._columns: tuple[tuple[str, str, float] | None, ...] = ()
        self._sized = True
        self._both = ""
        self._size = -1

    @property
    def wants_next(self) -> bool:
        """Whether rows may follow."""
        return self._table.wanted

    def read(self, line: Line) -> Iterator[Hit | Unreadable]:
        """Yield the values of a row."""
        text = line.text.strip()
        if title := _TITLE.search(text):
            self._table.begin()
            self._both, self._columns = _directions(title[0]), ()
        elif self._head(text):
            self._table.begin()
        elif self._columns and text[:1].isdigit():
            yield from self._row(text.split())
        else:
            self._table.other()

    def _head(self, text: str) -> bool:
        if not _HEAD.match(text):
            return False
        names = _COLUMN.findall(text)
        columns = tuple(_column(name, self._both) for name in names)
        if not any(columns):
            return False
        self._columns, self._sized, self._size = columns, names[0] == "Size", -1
        return True

    def _row(self, words: list[str]) -> Iterator[Hit | Unreadable]:
        if self._sized and (not _SIZE.fullmatch(words[0]) or int(words[0]) < self._size):
            # Sizes increase, so this is not a row of the table.
            self._columns = ()
            self._table.end()
            return
        if len(words) != len(self._columns) or not all(map(_WORD.fullmatch, words)):
            self._table.other()
            if len(words) > 1 and _WORD.fullmatch(words[1]):
                yield Unreadable()
            return
        self._table.begin()
        size = int(words[0]) if self._sized else None
        if size is not None and size == self._size:
            return
        self._size = -1 if size is None else size
        for column, word in zip(self._columns, words, strict=True):
            value = number(word) if column else None
            if column and value is not None:
                metric, variant, factor = column
                value = scaled(value, factor)
                yield Hit(metric, value, "global", message_size=size, variant=variant)


def _directions(title: str) -> str:
    if "Bi-Dir" in title or "Bi-dir" in title:
        return "bidirectional"
    return "pairs" if "Multiple Bandwidth" in title else ""


def _column(name: str, both: str) -> tuple[str, str, float] | None:
    named = _NAMED.match(name)
    if named is None or "%" in name:
        return None
    kind = (named["tail"] or named["kind"] or "").lower()
    if "MB/s" in name:
        return "algbw", "_".join(part for part in (both, kind) if part), 1e-3
    if named["plain"] in ("Comm", "(us)") and not kind:
        return None
    return "latency", kind, 1.0
