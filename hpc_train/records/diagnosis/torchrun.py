"""torchrun's own answer to who failed first: the entry under `Root Cause` of its report."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from hpc_train.model.diagnosis import Culprit
from hpc_train.records.line import Line

_HEAD = "Root Cause (first observed failure):"
_ENTRY = {
    "time": re.compile(r"^\s+time +: (\d{4}-\d\d-\d\d)_(\d\d:\d\d:\d\d)"),
    "host": re.compile(r"^\s+host +: (\S{1,120})"),
    "rank": re.compile(r"^\s+rank +: (\d{1,7}) \(local_rank: \d{1,5}\)"),
    "exit_code": re.compile(r"^\s+exitcode +: (-?\d{1,5}) \(pid: "),
}
# Lines of an entry, with those that other agents may write in between.
_LONGEST = 40
_TERMINATED = -15

Label = tuple[int | None, int | None]


class RootCauseReader:
    """Reads the reports of all agents in one log; they may be interleaved if they are labelled."""

    literals = (_HEAD.encode(),)

    def __init__(self) -> None:
        self._open: dict[Label, dict[str, str]] = {}
        self._left = 0

    @property
    def wants_next(self) -> bool:
        """Whether an entry is open."""
        return bool(self._open) and self._left > 0

    def read(self, line: Line) -> Iterator[Culprit]:
        """Yield who failed first, at the last line of its entry that is of use."""
        label = (line.prefix.rank, line.prefix.task)
        self._left -= 1
        if _HEAD in line.text:
            self._open[label] = {}
            self._left = _LONGEST
            return
        entry = self._open.get(label)
        if entry is None:
            return
        for name, pattern in _ENTRY.items():
            match = pattern.match(line.text)
            if match:
                entry[name] = "T".join(match.groups())
        if "exit_code" in entry:
            del self._open[label]
            yield Culprit(
                rank=int(entry["rank"]) if "rank" in entry else None,
                host=entry.get("host", ""),
                exit_code=int(entry["exit_code"]),
                time=entry.get("time"),
                said_by="torchrun",
            )


def first_of(culprits: Sequence[Culprit]) -> Culprit | None:
    """Return the first failure that all agents report; who was told to stop is a victim."""
    guilty = [one for one in culprits if one.exit_code != _TERMINATED] or list(culprits)
    return min(guilty, key=lambda one: one.time or "", default=None)
