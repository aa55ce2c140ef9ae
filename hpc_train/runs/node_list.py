"""A run -> the names of the nodes it ran on; Slurm's node lists as names."""

from __future__ import annotations

import re
from itertools import product

from hpc_train.model.run import Run

# A name with parts in brackets, between commas: `a[01-04,7]`, `r1c[2-3]n[1-4]`, `lab1`.
_NAME = re.compile(r"(?:[^\[\],\s]|\[[0-9,-]{1,20000}\]){1,200}")
_PART = re.compile(r"[^\[\]]{1,200}|\[[0-9,-]{1,20000}\]")
_RANGE = re.compile(r"(?P<low>[0-9]{1,9})(?:-(?P<high>[0-9]{1,9}))?")
# More nodes than any machine has.
_MOST = 100_000


def recorded_nodes(run: Run) -> str:
    """Return the node list that the job or the scheduler recorded, or the host of the job."""
    status, report = run.status, run.job_report
    names = (status.nodes if status else "") or (report.nodes if report else "")
    return names or (status.host if status else "")


def nodes_of(run: Run | None) -> tuple[str, ...]:
    """Return the names of the nodes of a run, sorted.

    Empty if they are not known: no list was recorded, or one of another number of nodes, as for a
    run on a part of its allocation.
    """
    manifest = run.manifest if run else None
    if run is None or manifest is None:
        return ()
    names = node_names(recorded_nodes(run))
    return tuple(sorted(names)) if len(names) == manifest.plan.topology.nodes else ()


def node_names(text: str) -> tuple[str, ...]:
    """Return the names in a node list of Slurm, `n[01-03],gpu7`, each once.

    Empty for any other text.
    """
    words = _NAME.findall(text)
    if ",".join(words) != text.strip():
        return ()
    names: dict[str, None] = {}
    for word in words:
        parts = [_alternatives(part) for part in _PART.findall(word)]
        count = 1
        for part in parts:
            count *= len(part)
        if not 0 < count <= _MOST - len(names):
            return ()
        names |= dict.fromkeys(map("".join, product(*parts)))
    return tuple(names)


def _alternatives(part: str) -> list[str]:
    """Return the numbers of `[01-03,7]` with their digits, or the text itself."""
    if not part.startswith("["):
        return [part]
    found: list[str] = []
    for text in part[1:-1].split(","):
        match = _RANGE.fullmatch(text)
        low = int(match["low"]) if match else 0
        high = int(match["high"] or low) if match else -1
        if match is None or high < low or high - low >= _MOST:
            return []
        found += [f"{number:0{len(match['low'])}}" for number in range(low, high + 1)]
    return found
