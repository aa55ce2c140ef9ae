"""Packs: records of a log as columns, the form in which they are checked and stored.

What many records have in common is held once, so that a record costs a row of five cells; as
compressed bytes, a pack takes a twentieth of the memory of its records as objects.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any

import msgspec
import zstandard

from hpc_train.model.record import UNITS, Record
from hpc_train.records.line import Line
from hpc_train.records.parsing.base import OF_LINE, Hit

# Enough to press well and to have neighbours at hand, and few enough that records come while a log
# is read.
LOT = 2048
_LEVEL = 1
# Kind, line, value, step, rank.
_Row = tuple[int, int, float, int | None, int | None]


class Pack(msgspec.Struct, array_like=True):
    """Some records of one file as columns; `kinds` hold what many of them have in common.

    `once`: the keys of those that have one, by their place.
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
        """Go through the records as kind, line, value, step and rank."""
        return zip(self.kind, self.line, self.value, self.step, self.rank, strict=True)

    def records(self) -> Iterator[Record]:
        """Yield the records."""
        replace, kinds = msgspec.structs.replace, self.kinds
        for kind, line, value, step, rank in self.rows:
            yield replace(kinds[kind], line=line, value=value, step=step, rank=rank)

    def without(self, places: Container[int]) -> Pack:
        """Return the pack without the records of some places."""
        kept = [place for place in range(len(self)) if place not in places]
        rows, once = list(self.rows), self.once
        keys = {new: once[old] for new, old in enumerate(kept) if old in once}
        return _pack(self.kinds, [rows[place] for place in kept], keys)


class Packer:
    """Packs what the lines of one file state."""

    def __init__(self, run: str, source: str) -> None:
        self._run, self._source = run, source
        self._begin()

    def _begin(self) -> None:
        self._kinds: list[Record] = []
        self._numbers: dict[Any, int] = {}
        self._once: dict[int, str] = {}
        self._rows: list[_Row] = []

    def __len__(self) -> int:
        """Return the number of records at hand."""
        return len(self._rows)

    @property
    def is_full(self) -> bool:
        """Whether there are enough for a pack."""
        return len(self._rows) >= LOT

    def add(self, parser: str, line: Line, hits: Sequence[Hit]) -> None:
        """Add what a parser has found in a line."""
        number, of_line, node = line.number, line.rank, line.node
        rows, numbers = self._rows, self._numbers
        for hit in hits:
            common = (
                *(parser, node, hit.metric, hit.variant, hit.scope),
                *(hit.unit, hit.steps, hit.message_size),
            )
            kind = numbers.get(common)
            if kind is None:
                kind = numbers[common] = len(numbers)
                self._kinds.append(self._kind(parser, node, hit))
            if hit.once:
                self._once[len(rows)] = hit.once
            rank = hit.rank
            rows.append((kind, number, hit.value, hit.step, of_line if rank == OF_LINE else rank))

    def taken(self) -> Pack:
        """Return what was added since the last time."""
        pack = _pack(self._kinds, self._rows, self._once)
        self._begin()
        return pack

    def _kind(self, parser: str, node: str | None, hit: Hit) -> Record:
        return Record(
            run=self._run,
            source=self._source,
            line=0,
            parser=parser,
            metric=hit.metric,
            value=0.0,
            unit=hit.unit or UNITS[hit.metric],
            scope=hit.scope,
            node=node,
            steps=hit.steps,
            message_size=hit.message_size,
            variant=hit.variant,
        )


_OWN = frozenset({"line", "value", "step", "rank"})
_common = attrgetter(*(name for name in Record.__struct_fields__ if name not in _OWN))
_file = attrgetter("run", "source")
_decode = msgspec.msgpack.Decoder(Pack).decode


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
                yield _pack(kinds, rows, {})
                numbers, kinds, rows = {}, [], []
        if rows:
            yield _pack(kinds, rows, {})


def pressed(pack: Pack) -> bytes:
    """Return a pack as compressed bytes."""
    return zstandard.compress(msgspec.msgpack.encode(pack), _LEVEL)


def unpressed(content: bytes) -> Pack:
    """Return the pack of compressed bytes."""
    return _decode(zstandard.decompress(content))


def _pack(kinds: list[Record], rows: Sequence[_Row], once: dict[int, str]) -> Pack:
    kind, line, value, step, rank = zip(*rows, strict=True) if rows else ((),) * 5
    return Pack(kinds, kind, line, value, step, rank, once)
