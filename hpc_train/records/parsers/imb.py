"""Tables of the Intel MPI Benchmarks (MPI1, NBC, RMA, EXT): `#bytes #repetitions t[usec] ..`.

| column | metric | unit | scope |
|---|---|---|---|
| `t_avg[usec]`, `t[usec]` | latency | us | global |
| `t_min[usec]`, `t_max[usec]` | latency, variant `min`, `max` | us | global |
| `t_ovrl[usec]`, `t_pure[usec]` | latency, variant `overall`, `pure` | us | global |
| `Mbytes/sec` | algbw | GB/s | global |
| `# #processes = 2` | world_size, of the table | 1 | global |

`#bytes` is the message_size. Times are means over the repetitions; minimum, maximum and mean are
over the processes. A megabyte is 2^20 B in old versions and 10^6 B in new ones. The unit is
inferred from a row, in which the rate is the size times 1, 2 or 4, divided by the time; if this is
not possible, the rate is omitted. The rate of Sendrecv and Exchange counts both directions: variant
`bidirectional`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping

from hpc_train.model.record import Scope
from hpc_train.records.line import Line
from hpc_train.records.parsing.log_parser import Hit, TableState, Unreadable
from hpc_train.records.parsing.printed_numbers import number, scaled

_TITLE = re.compile(r"# Benchmarking (?P<name>[A-Za-z_]{3,40})\s*$")
_PROCESSES = re.compile(r"# (?:\( )?#processes = (\d{1,9})\b")
_HEAD = re.compile(r"(?:#bytes )?\s{0,24}#repetitions\s{1,24}t")
_COLUMN = re.compile(r"#bytes|#repetitions|t(?:_[a-zA-Z]{2,5})?\[usec\]|[A-Za-z/]{3,12}(?:\[%\])?")
_LATENCIES = {
    "t[usec]": "",
    "t_avg[usec]": "",
    "t_min[usec]": "min",
    "t_max[usec]": "max",
    "t_ovrl[usec]": "overall",
    "t_pure[usec]": "pure",
}
_RATE = "Mbytes/sec"
_NUMBER = re.compile(r"\d{1,15}(?:\.\d{1,6})?(?:e[+-]\d\d)?")
_BOTH_WAYS = ("Sendrecv", "Exchange", "Biband")
# The ratio of 2^20 to 10^6, as a power of 2.
_BINARY = math.log2(2**20 / 1e6)
_CLEAR = 0.01
# Values of this size, printed with two decimals, are precise enough to infer the unit.
_LEAST_RATE, _LEAST_TIME = 5.0, 1.0


class Imb:
    """Parser of successive tables."""

    title = "Intel MPI Benchmarks"
    literals = (b"# Benchmarking ", b"#repetitions ", b"#processes = ")
    sample = """\
# Benchmarking Sendrecv
# #processes = 2
       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]   Mbytes/sec
      4194304           10       400.00       400.00       400.00     20971.52
"""
    states: Mapping[str, Scope] = {"world_size": "global", "latency": "global", "algbw": "global"}

    def __init__(self) -> None:
        self._table = TableState()
        self._columns: list[str] = []
        self._name = ""
        self._mega: float | None = None

    @property
    def wants_next(self) -> bool:
        """Whether rows may follow."""
        return self._table.wanted

    def read(self, line: Line) -> Iterator[Hit | Unreadable]:
        """Yield the values of a row, or the number of processes."""
        text = line.text.strip()
        if title := _TITLE.search(text):
            self._name, self._columns = title["name"], []
        elif processes := _PROCESSES.search(text):
            count = processes[1]
            yield Hit("world_size", float(count), "global", variant=self._name)
        elif _HEAD.match(text):
            self._columns = _COLUMN.findall(text)
            self._table.begin()
        elif self._columns and text[:1].isdigit():
            yield from self._row(text.split())
        else:
            self._table.other()

    def _row(self, words: list[str]) -> Iterator[Hit | Unreadable]:
        if len(words) != len(self._columns) or not all(map(_NUMBER.fullmatch, words)):
            self._table.other()
            if len(words) > 1:
                yield Unreadable()
            return
        self._table.begin()
        row = dict(zip(self._columns, words, strict=True))
        size = int(row["#bytes"]) if row.get("#bytes", "").isdecimal() else None
        for column, variant in _LATENCIES.items():
            value = number(row[column]) if column in row else None
            if value:
                yield Hit("latency", value, "global", message_size=size, variant=variant)
        rate = self._rate(row, size)
        if rate:
            both = "bidirectional" if self._name.startswith(_BOTH_WAYS) else ""
            yield Hit("algbw", rate, "global", message_size=size, variant=both)

    def _rate(self, row: Mapping[str, str], size: int | None) -> float | None:
        printed = number(row.get(_RATE, ""))
        time = number(row.get("t_max[usec]") or row.get("t[usec]") or "")
        if not printed:
            return None
        if size and time and printed >= _LEAST_RATE and time >= _LEAST_TIME:
            self._mega = _mega(printed * time / size) or self._mega
        return scaled(printed, self._mega * 1e-9) if self._mega else None


def _mega(ratio: float) -> float | None:
    """Return the bytes of a megabyte, from the rate times the time divided by the size."""
    if ratio <= 0:
        return None
    power = math.log2(ratio)
    decimal, binary = (abs(power + extra - round(power + extra)) for extra in (0, _BINARY))
    if min(decimal, binary) > _CLEAR:
        return None
    return 1e6 if decimal < binary else 2.0**20
