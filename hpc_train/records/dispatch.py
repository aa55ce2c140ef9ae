"""A log -> its lines, each with the readers that look for something on it; one pass for all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from hpc_train.records.blocks import Stream, blocks
from hpc_train.records.line import Line
from hpc_train.records.lines import lines_of
from hpc_train.records.literals import finder


class Reader(Protocol):
    """Whoever looks for something in a log: says in which lines."""

    @property
    def literals(self) -> tuple[bytes, ...]:
        """Every line of interest holds at least one of them, and they hold no line end."""
        ...

    @property
    def wants_next(self) -> bool:
        """Whether the following line is wanted, whatever it holds."""
        ...


def dispatch(
    stream: Stream, readers: Sequence[Reader], file_rank: int | None = None
) -> Iterator[tuple[Line, list[int]]]:
    """Yield each line of interest with the numbers of the readers that it is for.

    Readers that want it because of the line before come first; apart from that they come in their
    order.
    """
    literals = tuple(sorted({literal for reader in readers for literal in reader.literals}))
    owners = [
        [number for number, reader in enumerate(readers) if literal in reader.literals]
        for literal in literals
    ]
    find = finder(literals)

    def more() -> bool:
        return any(reader.wants_next for reader in readers)

    for block in blocks(stream):
        for line, held in lines_of(block, find, more, file_rank):
            eager = [number for number, reader in enumerate(readers) if reader.wants_next]
            asked = {number for literal in held for number in owners[literal]}
            yield line, eager + sorted(asked.difference(eager))
