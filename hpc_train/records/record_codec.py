"""Measurements in lines -> packs, and packs as compressed bytes.

As compressed bytes, a pack takes a twentieth of the memory of its records as objects.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate, compress
from typing import Any

import msgspec
import zstandard

from hpc_train.model.record import LOT, UNITS, Pack, Record
from hpc_train.records.line import Line
from hpc_train.records.parsing.line_form import HitColumn
from hpc_train.records.parsing.log_parser import OF_LINE, Hit
from hpc_train.records.same_form_lines import LineRun

_LEVEL = 1


_Columns = tuple[list[int], list[int], list[float], list[int | None], list[int | None]]


class Packer:
    """Packs the measurements in the lines of one file."""

    def __init__(self, run: str, source: str) -> None:
        self._run, self._source = run, source
        self._begin()

    def _begin(self) -> None:
        self._kinds: list[Record] = []
        self._numbers: dict[Any, int] = {}
        self._once: dict[int, str] = {}
        self._columns: _Columns = ([], [], [], [], [])

    def __len__(self) -> int:
        """Return the number of records that are not yet in a pack."""
        return len(self._columns[0])

    @property
    def is_full(self) -> bool:
        """Whether there are enough records for a pack."""
        return len(self._columns[0]) >= LOT

    def add(self, parser: str, line: Line, hits: Sequence[Hit]) -> None:
        """Add the measurements that a parser has found in a line."""
        number, of_line, node = line.number, line.rank, line.node
        kinds, lines, values, steps, ranks = self._columns
        for hit in hits:
            if hit.once:
                self._once[len(kinds)] = hit.once
            kinds.append(self._kind(parser, hit.node or node, hit))
            lines.append(number)
            values.append(hit.value)
            steps.append(hit.step)
            ranks.append(of_line if hit.rank == OF_LINE else hit.rank)

    def packs_with(self, parser: str, run: LineRun) -> Iterator[Pack]:
        """Add the measurements that a parser has found in a run; yield the packs that are full.

        A pack ends after a line, as if the lines were added one by one.
        """
        # Measurements up to each line; most runs of silent lines have no column.
        ends = list(accumulate(run.counts)) if run.columns else []
        start = done = 0
        while start < len(ends):
            stop = bisect_left(ends, done + LOT - len(self), start) + 1
            self._extend(parser, run, slice(start, stop))
            start = stop
            if stop <= len(ends):
                done = ends[stop - 1]
                yield self.taken()

    def _extend(self, parser: str, run: LineRun, part: slice) -> None:
        """Add the measurements of a part of a run, line by line."""
        numbers, of_line = range(run.number, run.number + len(run.matches))[part], run.ranks[part]
        lines, width = len(numbers), len(run.columns)
        cells: list[list[Any]] = [[None] * (lines * width) for _ in self._columns]
        for place, column in enumerate(run.columns):
            ranks = of_line if column.rank == OF_LINE else [column.rank] * lines
            kinds = self._kinds_of(parser, column, part, lines)
            own = (kinds, numbers, column.value[part], column.step[part], ranks)
            for whole, found in zip(cells, own, strict=True):
                whole[place::width] = found
        held: tuple[list[Any], ...] = self._columns
        values = cells[2]
        stated = [value is not None for value in values] if None in values else None
        for column_of_all, whole in zip(held, cells, strict=True):
            column_of_all += whole if stated is None else compress(whole, stated)

    def _kinds_of(self, parser: str, column: HitColumn, part: slice, lines: int) -> list[int]:
        """Return the numbers of the kinds of a column."""
        steps = [1] * lines if column.steps is None else column.steps[part]
        kinds = {}
        for one in set(steps):
            hit = Hit(column.metric, 0.0, column.scope, unit=column.unit, steps=one)
            kinds[one] = self._kind(parser, None, hit)
        return [kinds[one] for one in steps]

    def taken(self) -> Pack:
        """Return the records that were added since the last call."""
        pack = Pack(self._kinds, *self._columns, self._once)
        self._begin()
        return pack

    def _kind(self, parser: str, node: str | None, hit: Hit) -> int:
        """Return the number of a hit's kind."""
        # fmt: off
        common = (
            parser, node, hit.metric, hit.variant, hit.scope, hit.unit, hit.steps, hit.message_size,
        )
        # fmt: on
        number = self._numbers.get(common)
        if number is None:
            number = self._numbers[common] = len(self._kinds)
            self._kinds.append(self._new_kind(parser, node, hit))
        return number

    def _new_kind(self, parser: str, node: str | None, hit: Hit) -> Record:
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


_decode = msgspec.msgpack.Decoder(Pack).decode


def pressed(pack: Pack) -> bytes:
    """Return a pack as compressed bytes."""
    return zstandard.compress(msgspec.msgpack.encode(pack), _LEVEL)


def unpressed(content: bytes) -> Pack:
    """Return the pack of compressed bytes."""
    return _decode(zstandard.decompress(content))
