"""torchrun's report of failed ranks -> one entry for each rank."""

from __future__ import annotations

import re

from hpc_train.model.value import Value
from hpc_train.records.line import Line
from hpc_train.records.tracebacks import Speaker, speaker_of

ROOT = "Root Cause"
OTHERS = ("Failures:", "Other Failures:")
LITERALS = (
    b"time      : ",
    b"host      : ",
    b"rank      : ",
    b"exitcode  : ",
    b"error_file: ",
    b"traceback : ",
    b"Root Cause (first observed failure)",
    b"Other Failures:",
    b"Root Cause:",
)
_FIELD = re.compile(
    r"^\s{1,8}(?P<key>time|host|rank|exitcode|error_file|traceback|msg) {0,6}: ?(?P<value>.{0,500})"
)
_RANK = re.compile(r"^(\d{1,7}) \(local_rank: (\d{1,5})\)")
_EXIT = re.compile(r"^(-?\d{1,6}) \(pid: (\d{1,10})\)(?: +\((SIG\w{2,10})\))?")
_SIGNAL = re.compile(r"^Signal \d{1,3} \((SIG\w{2,10})\)")
_NOTHING = "To enable traceback"
_MOST = 4096
# Before torch 1.10 the fields of an entry are ordinary words: only a header identifies them.
_LINES = 24


class FailedRank(Value, frozen=True, kw_only=True):
    """A failed rank: the line of its exit code, and the fields of its entry."""

    line: int
    text: str
    rank: int
    node: str | None
    time: str | None
    groups: tuple[tuple[str, str], ...]


class TorchrunReport:
    """Reads the reports in one log, which several agents may write at the same time."""

    def __init__(self) -> None:
        self._fields: dict[Speaker, dict[str, str]] = {}
        self._lines: dict[Speaker, int] = {}
        self._root: set[Speaker] = set()
        self._left = 0

    @property
    def is_open(self) -> bool:
        """Whether the next lines may belong to an entry."""
        return self._left > 0

    def read(self, line: Line) -> FailedRank | None:
        """Read a line; return the entry that it completes."""
        text, speaker = line.text, speaker_of(line)
        self._left -= 1
        if text.startswith(ROOT):
            self._root.add(speaker)
            self._left = _LINES
        elif text.startswith(OTHERS):
            self._root.discard(speaker)
            self._left = _LINES
        field = _FIELD.match(text)
        if field is None or len(self._fields) > _MOST:
            return None
        key, value = field["key"], field["value"].strip()
        if self._left > 0:
            self._left = _LINES
        if key == "time":
            self._fields[speaker] = {}
        fields = self._fields.setdefault(speaker, {})
        fields[key] = value
        if key == "exitcode":
            self._lines[speaker] = line.number
        if key in ("traceback", "msg"):
            del self._fields[speaker]
            first = speaker in self._root
            self._root.discard(speaker)
            return _entry(fields, self._lines.pop(speaker, line.number), first=first)
        return None


def _entry(fields: dict[str, str], line: int, *, first: bool) -> FailedRank | None:
    rank, code = _RANK.match(fields.get("rank", "")), _EXIT.match(fields.get("exitcode", ""))
    if rank is None or code is None:
        return None
    message = fields.get("traceback") or fields.get("msg", "")
    suffix = "" if message.startswith(_NOTHING) else f"; {message}"
    signal = _SIGNAL.match(message)
    groups = {
        "rank": rank[1],
        "local_rank": rank[2],
        "exitcode": code[1],
        "pid": code[2],
        "signal": code[3] or (signal[1] if signal else ""),
        "error_file": fields.get("error_file", ""),
        "root": "yes" if first else "",
    }
    host = fields.get("host")
    where = f" on {host}" if host else ""
    return FailedRank(
        line=line,
        text=f"rank {rank[1]}{where}: exitcode {fields['exitcode']}{suffix}",
        rank=int(rank[1]),
        node=host,
        time=fields.get("time", "").replace("_", "T") or None,
        groups=tuple((name, value) for name, value in groups.items() if value),
    )
