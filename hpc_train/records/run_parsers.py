"""Lines -> the measurements that parsers find in them; parsers by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import cast

from hpc_train import registry
from hpc_train.records.line import Line
from hpc_train.records.parse_stats import ParseStats, count
from hpc_train.records.parsing.log_parser import Hit, LogParser
from hpc_train.records.parsing.not_finite import may_be_no_number, not_finite


# Looking up all names takes as long as reading a small file, and each file has new parsers.
@cache
def maker(name: str) -> Callable[[], LogParser]:
    """Return the factory of a parser; each log needs a new parser.

    Raises:
        UnknownNameError: no such parser.
    """
    return cast(Callable[[], LogParser], registry.load("parsers", name))


def hits_in(
    lines: Iterable[tuple[Line, Sequence[int]]],
    parsers: Mapping[str, LogParser],
    source: str,
    census: ParseStats,
) -> Iterator[tuple[str, Line, Sequence[Hit]]]:
    """Yield the hits of each line, from the first of its parsers that can read it."""
    names, reads = tuple(parsers), [parser.read for parser in parsers.values()]
    for line, asked in lines:
        damaged, reader = 0, asked[0]
        hits: list[Hit] = []
        for number in asked:
            found = list(reads[number](line))
            if not found:
                continue
            hits = [hit for hit in found if type(hit) is Hit]
            if hits:
                damaged, reader = len(found) - len(hits), number
                count(census.known, names[number], source, line)
                break
            # A later parser may read the whole line.
            damaged = damaged or len(found)
        else:
            for number in asked:
                count(census.nearly, names[number], source, line)
        if may_be_no_number(line.raw):
            hits += not_finite(line, hits)
        if hits:
            yield names[reader], line, hits
        if damaged:
            census.damaged[source] = census.damaged.get(source, 0) + damaged
