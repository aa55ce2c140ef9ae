"""Many literals -> where they occur in a block, in one pass however many they are."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from operator import itemgetter

Occurrence = tuple[int, int]
"""Offset of a literal's last byte, and the literal's number."""


@lru_cache(maxsize=16)
def finder(literals: tuple[bytes, ...]) -> Callable[[bytes], list[Occurrence]]:
    """Return a function that yields every occurrence of the literals in some bytes, in order.

    Hyperscan looks for hundreds of them at the speed of one (1.5 to 2.7 GB/s, where a pass of `re`
    takes 2 GB/s for each). To get ready for them takes 0.1 s, which is done once. Where it has no
    build for the machine, `re` takes its turns.
    """
    try:
        import hyperscan
    except ImportError:
        return _turns(literals)
    database = hyperscan.Database()
    database.compile(
        expressions=[re.escape(literal) for literal in literals],
        ids=list(range(len(literals))),
        elements=len(literals),
        flags=[0] * len(literals),
    )

    def find(data: bytes) -> list[Occurrence]:
        found: list[Occurrence] = []
        append = found.append

        def note(number: int, _start: int, end: int, _flags: int, _context: object) -> None:
            append((end - 1, number))

        database.scan(data, match_event_handler=note)
        return found

    return find


def _turns(literals: Sequence[bytes]) -> Callable[[bytes], list[Occurrence]]:
    patterns = [re.compile(re.escape(literal)) for literal in literals]

    def find(data: bytes) -> list[Occurrence]:
        found = [
            (match.end() - 1, number)
            for number, pattern in enumerate(patterns)
            for match in pattern.finditer(data)
        ]
        return sorted(found, key=itemgetter(0))

    return find
