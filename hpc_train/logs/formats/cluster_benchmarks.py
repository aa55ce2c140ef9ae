"""Tables of values by the size of a message: OSU, Intel MPI Benchmarks, perftest, torch-dist-bench.

The columns of a table are known by their names, the keys of `fields`. 0 is no measurement.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from hpc_train.logs.formats.base import Hit, TableParser, Unreadable
from hpc_train.logs.formats.number import number, scaled
from hpc_train.logs.line import Line

_SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,6})?)([KMGTP]?)(?:i?B)?")
_NUMBER = re.compile(r"\d{1,15}(?!\d)")
_POWERS = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40, "P": 50}
_CELL = re.compile(
    r"(\d[\d,]{0,20}(?:\.\d{0,10})?(?:[eE][-+]?\d{1,3})?|-?nan|-?inf)(?:GBps|us)?|Pass|Fail|N/A|-|"
)
# Names of columns that state the size, and not a value.
_SIZES = ("Size", "#bytes", "payload")


class Layout(NamedTuple):
    """Patterns of the lines above a table: `title`, and `head` with the names of the columns.

    The groups of a title: `ranks` are the processes that measured, `name` the benchmark; a rate is
    that of `both` directions, or of many `pairs` of processes together.
    """

    title: re.Pattern[str]
    head: re.Pattern[str]
    column: re.Pattern[str]
    separator: str | None = None


class SizeTable(TableParser):
    """Parser of successive tables of one program."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._names: list[str] = []
        self._name = self._ways = ""
        self._size = -1

    def read(self, line: Line) -> Iterator[Hit | Unreadable]:
        """Yield the number of processes in a title, or the values of a row."""
        text = line.text.strip()
        if title := self._layout.title.search(text):
            yield from self._titled(title.groupdict())
        elif head := self._layout.head.search(text):
            names = self._layout.column.findall(text, head.start())
            if not self.fields.keys().isdisjoint(names):
                self.begin()
                self._names, self._size = names, -1
        elif self._names and (text[:1].isdigit() or text[:1] == self._layout.separator):
            yield from self._row([cell.strip() for cell in self._cells(text)])
        else:
            self.other()

    def _cells(self, text: str) -> list[str]:
        separator = self._layout.separator
        return text.strip("|").split(separator) if separator else text.split()

    def _titled(self, stated: dict[str, str | None]) -> Iterator[Hit]:
        if stated.get("ranks"):
            ranks = float(stated["ranks"] or 0)
            yield Hit("world_size", ranks, "global", variant=self._name)
            return
        self._names, self._name = [], stated.get("name") or ""
        both, pairs = stated.get("both"), stated.get("pairs")
        self._ways = "bidirectional" if both else "pairs" if pairs else ""

    def _row(self, cells: list[str]) -> Iterator[Hit | Unreadable]:
        found = [_CELL.fullmatch(cell) for cell in cells[1:]]
        sized = self._names[0] in _SIZES
        size, is_row = _bytes(cells[0]) if sized else None, bool(_NUMBER.match(cells[0]))
        if len(cells) != len(self._names) or not all(found) or not is_row:
            self.other()
            if is_row and found and found[0] and found[0][1]:
                yield Unreadable()
        elif size is not None and size < self._size:
            # Sizes increase, so this is not a row of the table.
            self._names = []
            self.end()
        elif size is None or size > self._size:
            self.begin()
            self._size = -1 if size is None else size
            for name, cell in zip(self._names, (_CELL.match(cells[0]), *found), strict=True):
                field, value = self.fields.get(name), number(cell[1] or "") if cell else None
                if field is not None and value:
                    ways = self._ways if field.metric == "algbw" else ""
                    variant = "_".join(filter(None, (ways, field.variant)))
                    value = scaled(value, field.scale)
                    yield Hit(field.metric, value, field.scope, message_size=size, variant=variant)


def _bytes(text: str) -> int | None:
    size = _SIZE.fullmatch(text)
    return None if size is None else round(float(size[1]) * 2 ** _POWERS[size[2]])


# Versions 2 to 7: `# OSU MPI Bandwidth Test v5.6.2`.
Osu = partial(
    SizeTable,
    Layout(
        re.compile(
            r"(?:^|# ?)OSU [A-Z](?=[^\n]{0,60}\b(?:Test|Benchmark)\b)"
            r"(?=[^\n]{0,60}(?P<both>Bi-[Dd]ir)|)(?=[^\n]{0,60}(?P<pairs>Multiple Bandwidth)|)"
        ),
        re.compile(
            r"^#?\s{0,4}(?:Size\s|(?:Avg )?Latency ?\(us\)|Overall ?\(us\)|Bandwidth \(MB/s\))"
        ),
        re.compile(
            r"P\d{1,3} Tail (?:Lat|BW)\((?:us|MB/s)\)|Transmit Size"
            r"|(?:(?!Size )[A-Z][A-Za-z_.]{0,15} )?[A-Z][A-Za-z_.]{0,15} ?\((?:us|MB/s|%)\)"
            r"|MB/s|Messages/s|Size|Iterations|Validation"
        ),
    ),
)
# MPI1, NBC, RMA, EXT. `Mbytes/sec` is not read: its megabyte differs between versions.
Imb = partial(
    SizeTable,
    Layout(
        re.compile(
            r"# Benchmarking (?P<name>[A-Za-z_]{3,40})\s*$"
            r"|# (?:\( )?#processes = (?P<ranks>\d{1,9})\b"
        ),
        re.compile(r"^(?:#bytes )?\s{0,24}#repetitions\s{1,24}t"),
        re.compile(r"#bytes|#repetitions|t(?:_[a-zA-Z]{2,5})?\[usec\]|[A-Za-z/]{3,12}(?:\[%\])?"),
    ),
)
# `ib_write_bw`, `ib_read_bw`, `ib_send_bw` and their `*_lat`.
Perftest = partial(
    SizeTable,
    Layout(
        re.compile(r"[A-Z]\w{1,15} (?P<both>Bidirectional )?BW Test\b"),
        re.compile(r"#bytes\s{1,20}#(?!repetitions)"),
        re.compile(r"#\w{1,12}|tps average|(?:[\w.%]{1,12} )?[\w.%]{1,12}\[[^][\s]{1,12}\]"),
    ),
)
TorchDistBench = partial(
    SizeTable,
    Layout(
        re.compile(r"The average bandwidth\b.{1,80} over (?P<ranks>\d{1,7}) ranks"),
        re.compile(r"\|\s{0,20}payload\s{0,20}\|"),
        re.compile(r"(?<=\|)\s{0,20}([a-z]\w{1,24}(?: \w{1,24})?)\s{0,20}(?=\|)"),
        "|",
    ),
)
