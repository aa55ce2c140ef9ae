"""Tables of nccl-tests and rccl-tests (`all_reduce_perf` and the others), all versions.

| line | metric | unit | scope |
|---|---|---|---|
| head `# size count type redop root time algbw ..` | world_size (listed above) | 1 | global |
| row `8 2 float sum -1 61.4 0.00 ..` | latency, algbw, busbw | us, GB/s = 1e9 B/s | global |
| `# Out of bounds values : N OK` | wrong_values | 1 | global |
| `# Avg bus bandwidth : x` | busbw, variant `average` | GB/s | global |

The header names the columns of a row; the size of a row is its message_size. Variants are
`out_of_place` and `in_place`; the report by iteration also has `in_place_min`, `.._max`, `.._p99`.
The average is over all sizes and both placements. It is low if the sweep starts at 8 B, and is not
the main result of a test. A world_size of variant `apart` is 1: each process ran a separate
test, and nothing was measured between processes (built or started without MPI). Messages of NCCL
may split a row; the parts are joined if together they have exactly the words of one row.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from hpc_train.model.record import Scope
from hpc_train.records.line import Line
from hpc_train.records.parsing.log_parser import Hit, TableState, Unreadable
from hpc_train.records.parsing.printed_numbers import NUMBER, number

_DEVICE = re.compile(
    # A pasted copy of the table may lack the `#`.
    r"(?:#|^)\s{0,8}Rank\s{1,8}(?P<rank>\d{1,7})\s{1,8}(?:Group\s{1,8}(?P<group>\d{1,7})\s{1,8})?"
    r"(?:Pid\s{1,12}(?P<pid>\d{1,10})\s{1,8}on\s{1,70}(?P<host>\S{1,256})|uses)\s{1,8}device\b"
)
_FOOT = re.compile(
    r"(?:#|^)\s{0,8}(?:(?P<wrong>Out of bounds values)|Avg bus bandwidth)"
    rf"\s{{0,20}}:\s{{0,20}}(?P<value>{NUMBER})(?=\s|$)"
)
_ROW = re.compile(r"(?:^|(?<=\s))\d{1,15}\s{1,40}\d{1,15}\s{1,40}[a-z][a-z0-9_]{2,15}\s")
_NCCL = re.compile(
    r"(?:\[\d{4}-\d\d-\d\d [\d:.]{8,20}\] ?)?"
    r"[A-Za-z][\w.-]{0,63}:\d{1,10}:\d{1,10} \[\d{1,3}\] "
)


class NcclTests:
    """Parser of the tables; one process prints them or, in a wrong setup, each prints its own."""

    title = "nccl-tests and rccl-tests"
    literals = (
        b"algbw",
        b"  Rank ",
        b"Out of bounds values",
        b"Avg bus bandwidth",
    )
    sample = """\
#  Rank  0 Group  0 Pid   4101 on     node01 device  0 [0000:1b:00] GPU
#  Rank  1 Group  0 Pid   4102 on     node01 device  1 [0000:3d:00] GPU
#       size         count      type   redop    root     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)
     1048576        262144     float     sum      -1     52.4   20.00   20.00      0
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 20.00
"""
    states: Mapping[str, Scope] = dict.fromkeys(
        ("world_size", "latency", "algbw", "busbw", "wrong_values"), "global"
    )

    def __init__(self) -> None:
        self._table = TableState()
        self._tables: dict[int | None, _Table] = {}

    @property
    def wants_next(self) -> bool:
        """Whether rows may follow."""
        return self._table.wanted

    def read(self, line: Line) -> Iterator[Hit | Unreadable]:
        """Yield the values of a header, a row or a footer; device lines are only counted."""
        text = line.text
        table = self._tables.get(line.rank)
        if table is None:
            table = self._tables[line.rank] = _Table(line.rank)
        if device := _DEVICE.search(text):
            table.note(device)
        elif columns := layout(text):
            self._table.begin()
            yield from table.head(columns)
        elif foot := _FOOT.search(text):
            table.layout = None
            if all(other.layout is None for other in self._tables.values()):
                self._table.end()
            yield from _foot(foot)
        elif found := table.row(text):
            self._table.begin()
            yield from found
        # NCCL may print thousands of lines before the first row.
        elif b"NCCL" not in line.raw:
            self._table.other()


class _Table:
    """The table that one process prints, and the devices that it listed."""

    def __init__(self, rank: int | None) -> None:
        self.layout: RowLayout | None = None
        self._rank = rank
        self._devices: dict[tuple[str, int], tuple[str, str]] = {}
        self._listed = False
        self._apart = False
        self._begun: list[str] = []

    def note(self, device: re.Match[str]) -> None:
        """Note a rank of the device list."""
        if self._listed:
            self._devices.clear()
            # A device list within a table: another process has started.
            self._listed, self._apart = False, self.layout is not None
        key = (device["group"] or "0", int(device["rank"]))
        process = (device["host"] or "", device["pid"] or "")
        self._apart |= self._devices.setdefault(key, process) != process

    def head(self, columns: RowLayout) -> Iterator[Hit]:
        """Start a table; yield the number of ranks in it."""
        self.layout, self._begun = columns, []
        if self._listed or not self._devices:
            return
        self._listed = True
        first = min(group for group, _ in self._devices)
        ranks = sum(group == first for group, _ in self._devices)
        # Only process 0 of a test prints.
        apart = ranks == 1 and (self._apart or bool(self._rank))
        yield Hit("world_size", float(ranks), "global", variant="apart" if apart else "")

    def row(self, text: str) -> list[Hit | Unreadable]:
        """Return the values of a row, or of a row that ends with this last part."""
        if self.layout is None:
            return []
        begins = _ROW.search(text + " ")
        start = begins.start() if begins else 0
        interrupted = _NCCL.search(text, start)
        words = text[start : interrupted.start() if interrupted else None].split()
        found: list[Hit | Unreadable] = []
        if begins is not None:
            found = [Unreadable()] if self._begun else []
        elif self._begun and are_values(words):
            words = [*self._begun, *words]
        else:
            return []
        self._begun = []
        hits = self.layout.hits(words)
        if hits is not None:
            found += hits
        elif interrupted and starts_row(words):
            self._begun = words
        # In the middle of a line, three such words need not be a row.
        elif not text[:start].strip():
            found.append(Unreadable())
        return found


def _foot(foot: re.Match[str]) -> Iterator[Hit]:
    value = number(foot["value"])
    if value is None:
        return
    if foot["wrong"]:
        yield Hit("wrong_values", value, "global")
    else:
        yield Hit("busbw", value, "global", variant="average")


_HEAD = re.compile(r"(?:^|[\s#])(?:size|bytes)\s{1,30}(?:count|N)\s{1,30}type\s")
_TIMES = frozenset({"time", "cputime"})
_PLACEMENTS = ("out_of_place", "in_place")
_METRICS = {"time": "latency", "cputime": "latency", "algbw": "algbw", "busbw": "busbw"}
# Of the report by iteration: times of single iterations.
_ITERATIONS = {"i_min": "min", "i_max": "max", "i_p99": "p99"}
_WHOLE = re.compile(r"\d{1,15}")
_TYPE = re.compile(r"[a-z][a-z0-9_]{2,15}")
_ROOT = re.compile(r"-1|\d{1,7}")
_VALUE = re.compile(r"N/A|-?nan|-?inf|-?\d{1,20}(?:\.\d{0,10})?(?:[eE][-+]?\d{1,3})?")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")


class RowLayout(NamedTuple):
    """The columns of a table: the names before the first time, what each later one states."""

    lead: tuple[str, ...]
    columns: tuple[tuple[str, str] | None, ...]

    def hits(self, words: Sequence[str]) -> Iterator[Hit] | None:
        """Return the values of a complete row; None if a word is missing, extra or not a value."""
        words = _undated(words)
        lead = len(words) - len(self.columns)
        if lead < 0 or not self._whole(words[:lead]):
            return None
        if not all(map(_VALUE.fullmatch, words[lead:])):
            return None
        return self._hits(int(words[0]), words[lead:])

    def _whole(self, words: Sequence[str]) -> bool:
        names = self.lead
        # All-to-all and the like have no operation: some versions leave its column blank.
        if len(words) == len(names) - 1:
            names = tuple(name for name in names if name != "redop")
        if len(words) != len(names) or not starts_row(words):
            return False
        return "root" not in names or bool(_ROOT.fullmatch(words[-1]))

    def _hits(self, size: int, words: Sequence[str]) -> Iterator[Hit]:
        for column, word in zip(self.columns, words, strict=True):
            value = number(word) if column else None
            if column and value is not None:
                metric, variant = column
                yield Hit(metric, value, "global", message_size=size, variant=variant)


def layout(text: str) -> RowLayout | None:
    """Return the columns that the line with their names states; None if it is no such line."""
    head = _HEAD.search(text)
    if head is None:
        return None
    names = text[head.start() :].lstrip(" \t#").split()
    if "busbw" not in names or "algbw" not in names or not _TIMES.intersection(names):
        return None
    if names[-1] == "timestamp":
        names.pop()
    first = next(position for position, name in enumerate(names) if name in _TIMES)
    columns: list[tuple[str, str] | None] = []
    placement = -1
    for name in names[first:]:
        placement += name in _TIMES
        columns.append(_column(name, _PLACEMENTS[min(placement, 1)]))
    return RowLayout(tuple(names[:first]), tuple(columns))


def starts_row(words: Sequence[str]) -> bool:
    """Return whether the words begin as a row does: size, count, type."""
    return (
        len(words) >= 3
        and all(map(_WHOLE.fullmatch, words[:2]))
        and bool(_TYPE.fullmatch(words[2]))
    )


def are_values(words: Sequence[str]) -> bool:
    """Return whether all words could be the rest of a row."""
    return bool(words) and all(map(_VALUE.fullmatch, _undated(words)))


def _column(name: str, placement: str) -> tuple[str, str] | None:
    if name in _ITERATIONS:
        return "latency", f"{placement}_{_ITERATIONS[name]}"
    metric = _METRICS.get(name)
    return (metric, placement) if metric else None


def _undated(words: Sequence[str]) -> Sequence[str]:
    return words[:-2] if len(words) > 2 and _DATE.fullmatch(words[-2]) else words
