"""What launchers and terminals put in front of a line, and the rank that it names."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from hpc_train.records.parsers.base import LogText

# Longer than any stack of prefixes; a bound keeps one 10 MB line from costing its length per hit.
_REACH = 512

_PREFIX = re.compile(
    rb"\s*(?:"
    rb"\x1b\[[0-9;]*[A-Za-z]"  # colour
    rb"|(?P<task>\d{1,7}): "  # srun --label
    rb"|(?:[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d [\d:]{8} \d{4})?"  # mpirun --timestamp-output
    rb"\[[^][,\s]+,(?P<mpi>\d{1,7})\](?:\[[^][\s]*\])?<std(?:out|err)>: ?"  # mpirun tags
    rb"|\[rank(?P<rank>\d{1,7})\]:? ?"
    rb"|\[[A-Za-z_]+(?P<local>\d{1,7})\]: ?"  # torchrun: role and local rank
    rb"|\[(?P<intel>\d{1,7})\] "  # Intel MPI -prepend-rank
    rb")"
)


class Prefix(NamedTuple):
    """The global rank that the prefixes of a line name, and what follows them."""

    rank: int | None
    rest: bytes


def rank_before(data: LogText, offset: int, floor: int = 0) -> int | None:
    """Return the global rank that the line of `offset` names before it, but after `floor`."""
    if offset == floor or data[offset - 1] in b"\r\n":
        return None
    return peel(line_head(data, offset, floor)).rank


def line_head(data: LogText, offset: int, floor: int = 0) -> bytes:
    """Return what stands on the line of `offset` before it, but nothing before `floor`.

    A carriage return starts a line too: progress bars go back to the margin.
    """
    reach = offset - _REACH
    window = data[reach if reach > floor else floor : offset]
    return window.rpartition(b"\n")[2].rpartition(b"\r")[2]


@lru_cache(maxsize=1024)  # The same few prefixes stand on all lines.
def peel(head: bytes) -> Prefix:
    """Take the prefixes, stacked in any order, off the start of a line."""
    found: dict[str, int] = {}
    position = 0
    while match := _PREFIX.match(head, position):
        position = match.end()
        if match.lastgroup:
            found.setdefault(match.lastgroup, int(match[match.lastgroup]))
    return Prefix(_global_rank(found), head[position:].strip())


def _global_rank(found: dict[str, int]) -> int | None:
    if "rank" in found:
        return found["rank"]
    # Under torchrun, the label of srun counts the agents (one a node), not the ranks.
    if "local" in found:
        return None
    return next((found[kind] for kind in ("task", "mpi", "intel") if kind in found), None)
