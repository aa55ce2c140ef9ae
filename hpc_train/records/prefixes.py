"""What launchers put in front of a line, and the rank that it names."""

from __future__ import annotations

import re
from typing import NamedTuple

_PREFIX = re.compile(
    r"\s*(?:"
    r"(?P<task>\d{1,7}): "  # srun --label
    r"|(?:[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d [\d:]{8} \d{4})?"  # mpirun --timestamp-output
    r"\[[^][,\s]+,(?P<mpi>\d{1,7})\](?:\[[^][\s]*\])?<std(?:out|err)>: ?"  # mpirun tags
    r"|\[rank(?P<rank>\d{1,7})\]:? ?"
    r"|\[[A-Za-z_]+(?P<local>\d{1,7})\]: ?"  # torchrun: role and local rank
    r"|\[(?P<intel>\d{1,7})\] "  # Intel MPI -prepend-rank
    r")"
)


class Prefix(NamedTuple):
    """What the prefixes of a line name, and what follows them.

    `rank` is global; `local` is the rank within an agent of torchrun; `task` the label of srun.
    """

    rest: str
    rank: int | None = None
    local: int | None = None
    task: int | None = None


def peel(text: str) -> Prefix:
    """Take the prefixes, stacked in any order, off a line; the outermost rank counts."""
    match = _PREFIX.match(text)
    if match is None:
        return Prefix(text)
    found: dict[str, int] = {}
    position = 0
    while match is not None:
        position = match.end()
        if match.lastgroup:
            found.setdefault(match.lastgroup, int(match[match.lastgroup]))
        match = _PREFIX.match(text, position)
    return Prefix(text[position:], _global_rank(found), found.get("local"), found.get("task"))


def _global_rank(found: dict[str, int]) -> int | None:
    if "rank" in found:
        return found["rank"]
    # Under torchrun, the label of srun counts the agents (one a node), not the ranks.
    if "local" in found:
        return None
    return next((found[kind] for kind in ("task", "mpi", "intel") if kind in found), None)
