"""Record: one measurement, with its unit, scope and source line; Pack: records as columns."""

from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import compress, groupby
from operator import attrgetter
from typing import Any, Literal

import msgspec

from hpc_train.base.value import Value
from hpc_train.jobs.log_selection import StatedScope

Scope = Literal[StatedScope, "unknown"]

# Records of a pack: large enough for compression and for the comparison of neighbouring values, and
# small enough that records are yielded while a log is read.
LOT = 2048
# Kind, line, value, step, rank.
_Row = tuple[int, int, float, int | None, int | None]
_OWN = frozenset({"line", "value", "step", "rank"})
_file = attrgetter("run", "source")


class Record(Value, frozen=True, kw_only=True, gc=False):
    """One value of one metric from one line of a log.

    `accuracy` and `mfu` are fractions, 0 to 1. `step` counts from 1 within the run. `rank` is the
    global rank that printed the line, None when the line does not say. `steps` is the number of
    steps that the value is the mean of: a line of a log that reports every tenth step has 10.
    `variant` distinguishes two values of one metric on one line (`out_of_place`, `in_place`), and
    `message_size` [B] is the message size of a bandwidth or latency. The metric `not_finite` counts
    a value that is NaN or infinite: `variant` is `loss`. The metric `condition` is a condition of
    the run: `variant` is `torch=2.13.0`.
    """

    run: str
    source: str
    line: int
    parser: str
    metric: str
    value: float
    unit: str
    scope: Scope
    step: int | None = None
    rank: int | None = None
    node: str | None = None
    steps: int = 1
    message_size: int | None = None
    variant: str = ""


class Pack(msgspec.Struct, array_like=True):
    """Some records of one file as columns, the form in which they are checked, stored and counted.

    Fields that many records share are stored once: `kinds`, so a record takes a row of five cells.
    `once`: the keys `once` of the records that have one, by position.
    """

    kinds: list[Record]
    kind: Sequence[int]
    line: Sequence[int]
    value: Sequence[float]
    step: Sequence[int | None]
    rank: Sequence[int | None]
    once: dict[int, str]

    def __len__(self) -> int:
        """Return the number of records."""
        return len(self.kind)

    @property
    def rows(self) -> Iterator[_Row]:
        """Iterate over the records as kind, line, value, step and rank."""
        return zip(self.kind, self.line, self.value, self.step, self.rank, strict=True)

    def records(self) -> Iterator[Record]:
        """Yield the records."""
        replace, kinds = msgspec.structs.replace, self.kinds
        for kind, line, value, step, rank in self.rows:
            yield replace(kinds[kind], line=line, value=value, step=step, rank=rank)

    def without(self, places: Container[int]) -> "Pack":
        """Return the pack without the records at these positions."""
        kept = [place not in places for place in range(len(self))]
        keys: dict[int, str] = {}
        if self.once:
            new = {old: new for new, old in enumerate(compress(range(len(self)), kept))}
            keys = {new[old]: key for old, key in self.once.items() if old in new}
        return Pack(
            self.kinds,
            list(compress(self.kind, kept)),
            list(compress(self.line, kept)),
            list(compress(self.value, kept)),
            list(compress(self.step, kept)),
            list(compress(self.rank, kept)),
            keys,
        )


_common = attrgetter(*(name for name in Record.__struct_fields__ if name not in _OWN))


def packs_of(records: Iterable[Record]) -> Iterator[Pack]:
    """Yield records as packs, each of one file."""
    for _, of_file in groupby(records, _file):
        numbers: dict[Any, int] = {}
        kinds: list[Record] = []
        rows: list[_Row] = []
        for record in of_file:
            kind = numbers.setdefault(_common(record), len(numbers))
            if kind == len(kinds):
                kinds.append(record)
            rows.append((kind, record.line, record.value, record.step, record.rank))
            if len(rows) == LOT:
                yield _pack(kinds, rows)
                numbers, kinds, rows = {}, [], []
        if rows:
            yield _pack(kinds, rows)


def _pack(kinds: list[Record], rows: Sequence[_Row]) -> "Pack":
    kind, line, value, step, rank = zip(*rows, strict=True) if rows else ((),) * 5
    return Pack(kinds, kind, line, value, step, rank, {})
