"""Measurements in lines -> packs, and packs as compressed bytes.

As compressed bytes, a pack takes a twentieth of the memory of its records as objects.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import zstandard

from hpc_train.model.record import LOT, UNITS, Pack, Record
from hpc_train.records.line import Line
from hpc_train.records.parsers.base import OF_LINE, Hit

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
