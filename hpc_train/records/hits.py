"""Lines -> what the parsers find in them; and the parsers by their names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import cast

from hpc_train import registry
from hpc_train.records.census import Census, count
from hpc_train.records.line import Line
from hpc_train.records.parsers.base import Hit, LogParser

# A loss without a number is no measurement, but it must not look as if the last finite one stood.
# Our own events have null for NaN.
_NO_NUMBER = re.compile(rb"oss[^\w|,;]{1,8}[-+]?(?:nan|NaN|NAN|inf|Inf|INF|null)")
_BEFORE = 32
_OTHER_LOSS = re.compile(rb"(?:val|test)\w{0,12}[ _/.-]{0,3}l$", re.IGNORECASE)


def maker(name: str) -> Callable[[], LogParser]:
    """Return what makes a parser for one log.

    Raises:
        UnknownNameError: no such parser.
    """
    return cast(Callable[[], LogParser], registry.load("parsers", name))


def hits_in(
    lines: Iterable[tuple[Line, Sequence[int]]],
    parsers: Mapping[str, LogParser],
    source: str,
    census: Census,
) -> Iterator[tuple[str, Line, Hit]]:
    """Yield what the parsers find in lines; of those asked, the first that can read one has it."""
    names, reads = tuple(parsers), [parser.read for parser in parsers.values()]
    for line, asked in lines:
        damaged = 0
        lost = _NO_NUMBER.search(line.raw)
        for number in asked:
            found = tuple(reads[number](line))
            good = False
            for hit in found:
                if type(hit) is Hit:
                    good = True
                    if hit.metric == "loss" and not hit.variant:
                        lost = None
                    yield names[number], line, hit
            if good:
                damaged = len(found) - sum(type(hit) is Hit for hit in found)
                count(census.known, names[number], source, line)
                break
            # Another one may know the line better.
            damaged = damaged or len(found)
        else:
            for number in asked:
                count(census.nearly, names[number], source, line)
        if lost and asked and _is_training(line.raw, lost):
            yield names[asked[0]], line, Hit("not_finite", 1.0, "per_rank", variant="loss")
        if damaged:
            census.damaged[source] = census.damaged.get(source, 0) + damaged


def _is_training(raw: bytes, lost: re.Match[bytes]) -> bool:
    """Whether it is the loss of the training: that of a validation without labels may be NaN."""
    before = raw[max(0, lost.start() - _BEFORE) : lost.start()]
    ours = b"@hpct" in raw or not lost[0].endswith(b"null")
    return ours and not _OTHER_LOSS.search(before)
