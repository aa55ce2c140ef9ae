"""Benchmarks of a cluster: OSU, Intel MPI, perftest, HPL."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping

from hpc_train.logs.formats.base import Coded, Column, Hit, TableParser, Unreadable, row_hits
from hpc_train.logs.formats.number import number, scaled
from hpc_train.logs.line import Line

# Tables of the OSU micro-benchmarks, versions 2 to 7: `# OSU MPI Bandwidth Test v5.6.2`.

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


class Osu(TableParser):
    """Parser of successive tables."""

    def __init__(self) -> None:
        self._columns: tuple[Column | None, ...] = ()
        self._sized = True
        self._both = ""
        self._size = -1

    def read(self, line: Line) -> Iterator[Hit | Unreadable]:
        """Yield the values of a row."""
        text = line.text.strip()
        if title := _TITLE.search(text):
            self.begin()
            two = "Bi-Dir" in title[0] or "Bi-dir" in title[0]
            pairs = "pairs" if "Multiple Bandwidth" in title[0] else ""
            self._both, self._columns = "bidirectional" if two else pairs, ()
        elif _HEAD.match(text) and any(columns := self._named(names := _COLUMN.findall(text))):
            self.begin()
            self._columns, self._sized, self._size = columns, names[0] == "Size", -1
        elif self._columns and text[:1].isdigit():
            yield from self._row(text.split())
        else:
            self.other()

    def _named(self, names: list[str]) -> tuple[Column | None, ...]:
        return tuple(_column(name, self._both) for name in names)

    def _row(self, words: list[str]) -> Iterator[Hit | Unreadable]:
        if self._sized and (not _SIZE.fullmatch(words[0]) or int(words[0]) < self._size):
            # Sizes increase, so this is not a row of the table.
            self._columns = ()
            self.end()
            return
        if len(words) != len(self._columns) or not all(map(_WORD.fullmatch, words)):
            self.other()
            if len(words) > 1 and _WORD.fullmatch(words[1]):
                yield Unreadable()
            return
        self.begin()
        size = int(words[0]) if self._sized else None
        if size is not None and size == self._size:
            return
        self._size = -1 if size is None else size
        yield from row_hits(self._columns, words, "global", size)


def _column(name: str, both: str) -> Column | None:
    named = _NAMED.match(name)
    if named is None or "%" in name:
        return None
    kind = (named["tail"] or named["kind"] or "").lower()
    if "MB/s" in name:
        return "algbw", "_".join(filter(None, (both, kind))), 1e-3
    if named["plain"] in ("Comm", "(us)") and not kind:
        return None
    return "latency", kind, 1.0


# Tables of the Intel MPI Benchmarks (MPI1, NBC, RMA, EXT): `#bytes #repetitions t[usec] ..`.

_IMB_TITLE = re.compile(r"# Benchmarking (?P<name>[A-Za-z_]{3,40})\s*$")
_PROCESSES = re.compile(r"# (?:\( )?#processes = (\d{1,9})\b")
_IMB_HEAD = re.compile(r"(?:#bytes )?\s{0,24}#repetitions\s{1,24}t")
_IMB_COLUMN = re.compile(
    r"#bytes|#repetitions|t(?:_[a-zA-Z]{2,5})?\[usec\]|[A-Za-z/]{3,12}(?:\[%\])?"
)
_RATE = "Mbytes/sec"
_NUMBER = re.compile(r"\d{1,15}(?:\.\d{1,6})?(?:e[+-]\d\d)?")
_BOTH_WAYS = ("Sendrecv", "Exchange", "Biband")
# The ratio of 2^20 to 10^6, as a power of 2.
_BINARY = math.log2(2**20 / 1e6)
_CLEAR = 0.01
# Values of this size, printed with two decimals, are precise enough to infer the unit.
_LEAST_RATE, _LEAST_TIME = 5.0, 1.0


class Imb(TableParser):
    """Parser of successive tables."""

    def __init__(self) -> None:
        self._columns: list[str] = []
        self._name = ""
        self._mega: float | None = None

    def read(self, line: Line) -> Iterator[Hit | Unreadable]:
        """Yield the values of a row, or the number of processes."""
        text = line.text.strip()
        if title := _IMB_TITLE.search(text):
            self._name, self._columns = title["name"], []
        elif processes := _PROCESSES.search(text):
            count = processes[1]
            yield Hit("world_size", float(count), "global", variant=self._name)
        elif _IMB_HEAD.match(text):
            self._columns = _IMB_COLUMN.findall(text)
            self.begin()
        elif self._columns and text[:1].isdigit():
            yield from self._row(text.split())
        else:
            self.other()

    def _row(self, words: list[str]) -> Iterator[Hit | Unreadable]:
        if len(words) != len(self._columns) or not all(map(_NUMBER.fullmatch, words)):
            self.other()
            if len(words) > 1:
                yield Unreadable()
            return
        self.begin()
        row = dict(zip(self._columns, words, strict=True))
        size = int(row["#bytes"]) if row.get("#bytes", "").isdecimal() else None
        known = [name for name in self.fields if name in row]
        hits = self.row(known, [row[name] for name in known], size)
        yield from (hit for hit in hits if hit.value)
        rate = self._rate(row, size)
        if rate:
            both = "bidirectional" if self._name.startswith(_BOTH_WAYS) else ""
            yield Hit("algbw", rate, "global", message_size=size, variant=both)

    def _rate(self, row: Mapping[str, str], size: int | None) -> float | None:
        printed = number(row.get(_RATE, ""))
        time = number(row.get("t_max[usec]") or row.get("t[usec]") or "")
        if size and time and printed and printed >= _LEAST_RATE and time >= _LEAST_TIME:
            self._mega = _mega(printed * time / size) or self._mega
        return scaled(printed, self._mega * 1e-9) if printed and self._mega else None


def _mega(ratio: float) -> float | None:
    """Return the bytes of a megabyte, from the rate times the time divided by the size."""
    if ratio <= 0:
        return None
    power = math.log2(ratio)
    decimal, binary = (abs(power + extra - round(power + extra)) for extra in (0, _BINARY))
    if min(decimal, binary) > _CLEAR:
        return None
    return 1e6 if decimal < binary else 2.0**20


# Tables of perftest: `ib_write_bw`, `ib_read_bw`, `ib_send_bw` and their `*_lat`.

_PERFTEST_HEAD = re.compile(r"#bytes\s{1,20}#(?!repetitions)")
_PERFTEST_TITLE = re.compile(r"[A-Z]\w{1,15} (?P<both>Bidirectional )?BW Test\b")
_PERFTEST_COLUMN = re.compile(
    r"#\w{1,12}|tps average|(?:[\w.%]{1,12} )?[\w.%]{1,12}\[[^][\s]{1,12}\]"
)
_PERFTEST_WORD = re.compile(r"\d{1,20}(?:\.\d{0,10})?|-?nan|-?inf|N/A")
_PERFTEST_SIZE = re.compile(r"\d{1,15}")


class Perftest(TableParser):
    """Parser of successive tables."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._both = ""

    def read(self, line: Line) -> Iterator[Hit | Unreadable]:
        """Yield the values of a row."""
        text = line.text
        head = _PERFTEST_HEAD.search(text)
        words = text.split()
        if title := _PERFTEST_TITLE.search(text):
            self._both = "bidirectional" if title["both"] else ""
        elif head:
            self._names = _PERFTEST_COLUMN.findall(text, head.start())
            self.begin()
        elif not self.wants_next or not words or not _PERFTEST_SIZE.fullmatch(words[0]):
            self.other()
        elif len(words) == len(self._names) and all(map(_PERFTEST_WORD.fullmatch, words)):
            self.begin()
            hits = self.row(self._names, words, int(words[0]), self._both)
            yield from (hit for hit in hits if hit.value or not hit.variant.endswith("peak"))
        elif all(map(_PERFTEST_WORD.fullmatch, words)):
            self.other()
            yield Unreadable()


# HPL (LINPACK): `WR11C2R4  35000  192  2  2  12.34  2.3e+03` and the check of the residual.

_ROW = re.compile(
    r"^\s{0,8}W[A-Z0-9]{5,9} {1,20}(?P<N>\d{1,12}) {1,20}(?P<NB>\d{1,7}) {1,20}(?P<P>\d{1,7})"
    r" {1,20}(?P<Q>\d{1,7}) {1,20}(?P<time>\d{1,12}\.\d\d) {1,24}"
    r"(?P<gflops>\d{1,3}\.\d{1,6}e[+-]\d\d)(?: \( ?\d{1,3}\.\d{1,6}e[+-]\d\d\))?$"
)
_CHECK = re.compile(
    r"^\s{0,8}\|\|Ax-b\|\|_oo ?/ ?[^=]{5,80}= {1,24}(?P<residual>\S{1,20}) [ .]{1,24}"
    r"(?P<verdict>PASSED|FAILED)$"
)


class Hpl(Coded):
    """Parser of the rows of a solution; remembers the problem for the row of the check."""

    def __init__(self) -> None:
        self._problem = ""
        self._processes = 0
        self._is_part = False

    def read(self, line: Line) -> Iterator[Hit]:
        """Yield a solution, its check, or the processes that HPL or HPC Challenge used."""
        text = line.text
        if row := _ROW.search(text):
            named = (f"{name}={int(row[name])}" for name in ("N", "NB", "P", "Q"))
            self._problem = problem = " ".join(named)
            self._processes = int(row["P"]) * int(row["Q"])
            for metric, group in (("gflops", "gflops"), ("solve_time", "time")):
                if value := number(row[group]):
                    yield Hit(metric, value, "global", variant=problem)
        elif check := _CHECK.search(text):
            residual = number(check["residual"])
            failed = " failed" if check["verdict"] == "FAILED" else ""
            if residual is not None:
                variant = (self._problem + failed).strip()
                yield Hit("residual", residual, "global", variant=variant)
        self._is_part = self._is_part or "HPL section" in text
        world = re.match(r"CommWorldProcs=(\d{1,9})$", text)
        processes = int(world[1]) if world else 0
        if text == "End of Tests." and not self._is_part:
            processes = self._processes
        if processes:
            yield Hit("world_size", float(processes), "global", once=f"{processes}")
