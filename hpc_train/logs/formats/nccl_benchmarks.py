"""Tables by the size of a message: nccl-tests, rccl-tests, OSU, Intel MPI Benchmarks, perftest."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

from hpc_train.logs.formats.base import NUMBER, Hit, TableParser, Unreadable, number, scaled
from hpc_train.logs.line import Line

# Tables of nccl-tests and rccl-tests (`all_reduce_perf` and the others), all versions.

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


class NcclTests(TableParser):
    """Parser of the tables; one process prints them or, in a wrong setup, each prints its own."""

    def __init__(self) -> None:
        self._tables: dict[int | None, _Table] = {}

    def read(self, line: Line) -> Iterator[Hit | Unreadable]:
        """Yield the values of a header, a row or a footer; device lines are only counted."""
        text = line.text
        table = self._tables.get(line.rank)
        if table is None:
            table = self._tables[line.rank] = _Table(line.rank)
        if device := _DEVICE.search(text):
            table.note(device)
        elif columns := layout(text):
            self.begin()
            yield from table.head(columns)
        elif foot := _FOOT.search(text):
            table.layout = None
            if all(other.layout is None for other in self._tables.values()):
                self.end()
            metric, variant = ("wrong_values", "") if foot["wrong"] else ("busbw", "average")
            if (value := number(foot["value"])) is not None:
                yield Hit(metric, value, "global", variant=variant)
        elif found := table.row(text):
            self.begin()
            yield from found
        # NCCL may print thousands of lines before the first row.
        elif b"NCCL" not in line.raw:
            self.other()


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
        elif self._begun and words and all(map(_VALUE.fullmatch, _undated(words))):
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
        size, cells = int(words[0]), zip(self.columns, map(number, words[lead:]), strict=True)
        return (
            Hit(column[0], value, "global", message_size=size, variant=column[1])
            for column, value in cells
            if column and value is not None
        )

    def _whole(self, words: Sequence[str]) -> bool:
        names = self.lead
        # All-to-all and the like have no operation: some versions leave its column blank.
        if len(words) == len(names) - 1:
            names = tuple(name for name in names if name != "redop")
        if len(words) != len(names) or not starts_row(words):
            return False
        return "root" not in names or bool(_ROOT.fullmatch(words[-1]))


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
        place = _PLACEMENTS[min(placement, 1)]
        if name in _ITERATIONS:
            columns.append(("latency", f"{place}_{_ITERATIONS[name]}"))
        else:
            metric = _METRICS.get(name)
            columns.append((metric, place) if metric else None)
    return RowLayout(tuple(names[:first]), tuple(columns))


def starts_row(words: Sequence[str]) -> bool:
    """Return whether the words begin as a row does: size, count, type."""
    return (
        len(words) >= 3
        and all(map(_WHOLE.fullmatch, words[:2]))
        and bool(_TYPE.fullmatch(words[2]))
    )


def _undated(words: Sequence[str]) -> Sequence[str]:
    return words[:-2] if len(words) > 2 and _DATE.fullmatch(words[-2]) else words


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
            cells = text.strip("|").split(self._layout.separator)
            yield from self._row([cell.strip() for cell in cells])
        else:
            self.other()

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
