"""Lines -> the measurements that parsers find in them; parsers by name."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import cast

from hpc_train import registry
from hpc_train.model.record import Scope
from hpc_train.records.line import Line
from hpc_train.records.line_dispatch import dispatch
from hpc_train.records.parse_stats import ParseStats, count
from hpc_train.records.parsers.base import Hit, LogParser


# Looking up all names takes as long as reading a small file, and each file has new parsers.
@cache
def maker(name: str) -> Callable[[], LogParser]:
    """Return the factory of a parser; each log needs a new parser.

    Raises:
        UnknownNameError: no such parser.
    """
    return cast(Callable[[], LogParser], registry.load("parsers", name))


def stated(parser: LogParser) -> dict[str, Scope]:
    """Return the metrics in the sample of a new parser, and their scopes."""
    lines = dispatch(io.BytesIO(parser.sample.encode()), [parser])
    hits = [hit for line, _ in lines for hit in parser.read(line)]
    return {hit.metric: hit.scope for hit in hits if isinstance(hit, Hit)}


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


# A line whose training loss is NaN or infinite -> the measurement `not_finite`.
#
# A loss that is not finite is not a measurement of `loss`. Without `not_finite`, the last finite
# loss before it would look like the end of the training.

_NO_NUMBER = re.compile(rb"oss[^\w|,;]{1,8}[-+]?(?:nan|NaN|NAN|inf|Inf|INF|null)")
may_be_no_number = _NO_NUMBER.search
_OTHER_LOSS = re.compile(rb"(?:val|test)\w{0,12}[ _/.-]{0,3}l$", re.IGNORECASE)
_BEFORE = 32


def not_finite(line: Line, hits: Sequence[Hit]) -> Iterator[Hit]:
    """Yield that the loss is not finite, unless the line has a finite one, too."""
    found = _NO_NUMBER.search(line.raw)
    if found is None or any(hit.metric == "loss" and not hit.variant for hit in hits):
        return
    if _is_training(line.raw, found):
        yield Hit("not_finite", 1.0, "per_rank", variant="loss")


def _is_training(raw: bytes, found: re.Match[bytes]) -> bool:
    """Whether it is the loss of the training: that of a validation without labels may be NaN."""
    before = raw[max(0, found.start() - _BEFORE) : found.start()]
    # Events of `@hpct` have null for NaN; elsewhere null is a value that was not measured.
    is_stated = b"@hpct" in raw or not found[0].endswith(b"null")
    return is_stated and not _OTHER_LOSS.search(before)
