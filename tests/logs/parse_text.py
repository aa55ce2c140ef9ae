"""Text -> what the registered parsers read in it, as `collect` reads a file."""

import io

from hpc_train.base import registry
from hpc_train.logs.formats.base import OF_LINE, Hit
from hpc_train.logs.formats.formats import maker
from hpc_train.logs.line import dispatch
from hpc_train.logs.read_log import GUESSING, ParseStats, hits_in

Brief = tuple[str, float, str, int | None, int | None]


def parse(
    text: bytes, *names: str, rank: int | None = None, census: ParseStats | None = None
) -> list[tuple[int, Hit, int | None]]:
    """Return line number, hit and rank of all that the named parsers, or all, find.

    Without `not_finite`, which is no parser's: test_not_finite.py has it.
    """
    chosen = names or [name for name in registry.names("parsers") if name != GUESSING]
    parsers = {name: maker(name)() for name in chosen}
    lines = dispatch(io.BytesIO(text), tuple(parsers.values()), rank)
    found = hits_in(lines, parsers, "log", census or ParseStats())
    return [
        (line.number, hit, line.rank if hit.rank == OF_LINE else hit.rank)
        for _, line, hits in found
        for hit in hits
        if hit.metric != "not_finite"
    ]


def brief(text: bytes, *names: str, rank: int | None = None) -> list[Brief]:
    """Return metric, value, scope, step and rank of each hit."""
    return [
        (hit.metric, hit.value, hit.scope, hit.step, who)
        for _, hit, who in parse(text, *names, rank=rank)
    ]


def values(text: bytes, metric: str, *names: str) -> list[float]:
    """Return the values of one metric, in order."""
    return [hit.value for _, hit, _ in parse(text, *names) if hit.metric == metric]
