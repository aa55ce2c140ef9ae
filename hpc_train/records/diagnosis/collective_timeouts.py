"""Reports of PyTorch's watchdog on collectives that timed out, and on the progress of each rank.

All versions since 1.10 print two kinds of line: the collective that timed out (`WorkNCCL(…)`), and
the progress of the process group of a rank (`last enqueued … last completed …`). `[Rank r]` is the
rank within the group; the prefix of the line has the global rank.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from hpc_train.model.value import Value
from hpc_train.records.line import Line

_WAIT = re.compile(
    r"(?:\[Rank (?P<rank>\d{1,7})\] )?Watchdog caught collective operation timeout: "
    r"Work\w{1,12}\((?:SeqNum=(?P<seq>\d{1,12}), )?OpType=(?P<op>\w{1,60})"
    r"(?:, (?:Tensor|NumelIn=(?P<numel_in>\d{1,15}), NumelOut=(?P<numel_out>\d{1,15})))?"
)
_RAN = re.compile(r"ran for (\d{1,12}) milliseconds")
_GROUP = re.compile(
    r"\[PG (?:ID \S{1,80} PG GUID )?(?P<group>[^\s()\]]{1,80}) ?(?:\([^)\]]{0,80}\))? "
    r"?Rank (?P<rank>\d{1,7})\]"
)
_LAST = re.compile(
    r"[Ll]ast enqueued (?:NCCL )?work: (?P<enqueued>-?\d{1,12}), "
    r"(?:last started (?:NCCL )?work: [^,]{1,80}, )?"
    r"last completed (?:NCCL )?work: (?P<completed>-?\d{1,12})"
)
_NAMED = re.compile(r"\[rank(\d{1,7})\]:")
_AT = re.compile(r"(?:at work(?: sequence id)?|at NCCL work): (\d{1,12})")


class Wait(Value, frozen=True, kw_only=True):
    """A rank waited in a collective until its timeout; `sizes` are the elements in and out."""

    rank: int | None
    number: int | None
    op: str
    sizes: str
    ran_s: float | None
    source: str
    line: int


class Progress(Value, frozen=True, kw_only=True):
    """The last collectives of a process group that a rank started, and that it completed.

    `stuck` is the collective that timed out, if the line names it.
    """

    rank: int | None
    group: str
    enqueued: int
    completed: int
    stuck: int | None
    source: str
    line: int


class CollectiveReader:
    """Finds both kinds of line in one log."""

    literals = (b"Watchdog caught collective operation timeout", b"ast enqueued ")
    wants_next = False

    def __init__(self, source: str = "") -> None:
        self._source = source

    def read(self, line: Line) -> Iterator[Wait | Progress]:
        """Yield the timeout or the progress that a line reports."""
        text = line.text
        wait = _WAIT.search(text)
        if wait is not None:
            yield self._wait(line, wait)
        last = _LAST.search(text)
        if last is not None:
            yield self._progress(line, last)

    def _wait(self, line: Line, match: re.Match[str]) -> Wait:
        ran = _RAN.search(line.text, match.end())
        sizes = f"{match['numel_in']} in, {match['numel_out']} out" if match["numel_in"] else ""
        return Wait(
            rank=_rank(line, match["rank"]),
            number=None if match["seq"] is None else int(match["seq"]),
            op=match["op"],
            sizes=sizes,
            ran_s=int(ran[1]) / 1000 if ran else None,
            source=self._source,
            line=line.number,
        )

    def _progress(self, line: Line, match: re.Match[str]) -> Progress:
        group, at = _GROUP.search(line.text), _AT.search(line.text)
        return Progress(
            rank=_rank(line, group["rank"] if group else None),
            group=group["group"] if group else "",
            enqueued=int(match["enqueued"]),
            completed=int(match["completed"]),
            stuck=int(at[1]) if at else None,
            source=self._source,
            line=line.number,
        )


def _rank(line: Line, stated: str | None) -> int | None:
    if line.rank is not None:
        return line.rank
    # Ray and other programs print their own name before that of PyTorch.
    named = _NAMED.search(line.text)
    rank = named[1] if named else stated
    return None if rank is None else int(rank)
