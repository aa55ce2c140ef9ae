"""Lines of several ranks -> Python tracebacks, at most one open per rank."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from hpc_train.base.values import Value
from hpc_train.logs.line import Line

HEADER = "Traceback (most recent call last)"
_FRAME = re.compile(
    r'^\s*File "(?P<file>[^"\n]{1,400})", line (?P<line>\d{1,8})(?:, in (.{1,80}))?'
)
# The box that the library rich draws around a traceback, and its form of a frame.
_DRAWN = ("│", "╭", "╰", "╮", "╯")
_DRAWN_FRAME = re.compile(r"^│ (?P<file>\S{1,400}\.py):(?P<line>\d{1,8}) in ")
_SURE = re.compile(
    r"^(?:[A-Za-z_]\w*\.){0,10}(?:\w*(?:Error|Exception|Interrupt|Exit|Timeout|Warning|Failure)"
    r"|StopIteration|StopAsyncIteration|timeout|gaierror|herror)(?::(?: |$)|$)"
)
_LIKELY = re.compile(r"^(?:(?:[A-Za-z_]\w*\.){1,10}[A-Z]\w*|[A-Z][a-z0-9]{1,40}[A-Z]\w*)(?:: |:?$)")
# Heads of exceptions that were caught, and that the interpreter or `logging` only prints.
_IGNORED = ("Exception ignored in", "--- Logging error ---")
# Python's own modules, installed packages, PyTorch in any place.
_LIBRARY = re.compile(
    r"/(?:site|dist)-packages/|/lib(?:64)?/python\d|^<"
    r"|/torch/(?:_|autograd/|cuda/|distributed/|nn/|optim/|utils/)"
)
_LONGEST = 2000
_CODE = 160
_STRANGERS = 60
_MOST_OPEN = 4096
_FAR = 3

Speaker = tuple[int | None, int | None, int | None]


class Raised(NamedTuple):
    """The end of a traceback: the exception's line, and the last frame with its code before it.

    `caller` is the last frame (`file:line`) of the program, if a library raised the exception.
    """

    text: str
    file: str
    line: str
    code: str
    rank: int | None
    ignored: bool
    caller: str = ""


INSIDE = Raised("", "", "", "", None, ignored=True)
"""A line within a traceback."""


@dataclass
class _Open:
    depth: int
    rank: int | None
    ignored: bool
    frame: tuple[str, str] = ("", "")
    code: str = ""
    caller: str = ""
    lines: int = 0
    strangers: int = 0
    inside: bool = False


class Tracebacks:
    """Follows the tracebacks of one log; the prefix of a line identifies its rank."""

    def __init__(self) -> None:
        self._open: dict[Speaker, _Open] = {}
        self._ignored: dict[Speaker, int] = {}

    @property
    def any_open(self) -> bool:
        """Whether a traceback has not ended yet."""
        return bool(self._open)

    def read(self, line: Line, rank: int | None = None) -> Raised | None:
        """Read a line; return the exception if it ends a traceback, INSIDE if it is a part of one.

        `rank` is the rank of the traceback if its lines have no prefix.
        """
        text, speaker = line.text, speaker_of(line)
        if text.startswith(_IGNORED):
            self._ignored = {speaker: line.number}
        elif HEADER in text:
            near = line.number - self._ignored.get(speaker, -_FAR) < _FAR
            if len(self._open) < _MOST_OPEN or speaker in self._open:
                self._open[speaker] = _Open(_depth(text), rank, ignored=near)
        elif speaker in self._open:
            return self._follow(speaker, self._open[speaker], text)
        return None

    def _follow(self, speaker: Speaker, opened: _Open, text: str) -> Raised | None:
        opened.lines += 1
        if not text or _depth(text) > opened.depth or text.startswith(_DRAWN):
            frame = _FRAME.match(text) or _DRAWN_FRAME.match(text)
            if frame:
                opened.frame, opened.code = (frame["file"], frame["line"]), ""
                if not _LIBRARY.search(frame["file"]):
                    opened.caller = f"{frame['file']}:{frame['line']}"
            elif not opened.code and not text.startswith(_DRAWN):
                opened.code = text.strip()[:_CODE]
            opened.inside = opened.inside or bool(text)
            part: Raised | None = INSIDE
        elif _SURE.match(text.strip()) or (
            # Any other name only directly below a frame: `Epoch: 3` may come from another rank.
            opened.inside and opened.frame[0] and _LIKELY.match(text.strip())
        ):
            del self._open[speaker]
            place = ":".join(opened.frame)
            caller = opened.caller if opened.caller != place else ""
            return Raised(
                text.strip(), *opened.frame, opened.code, opened.rank, opened.ignored, caller
            )
        else:
            opened.inside = False
            opened.strangers += 1
            part = None
        if opened.lines > _LONGEST or opened.strangers > _STRANGERS:
            del self._open[speaker]
        return part


def speaker_of(line: Line) -> Speaker:
    """Return the rank, task or host that wrote a line, by its prefixes."""
    prefix = line.prefix
    return prefix.rank, prefix.local, prefix.task


def _depth(text: str) -> int:
    return len(text) - len(text.lstrip())


# torchrun's report of failed ranks -> one entry for each rank.

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
    message, host = fields.get("traceback") or fields.get("msg", ""), fields.get("host")
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
    where = f" on {host}" if host else ""
    return FailedRank(
        line=line,
        text=f"rank {rank[1]}{where}: exitcode {fields['exitcode']}{suffix}",
        rank=int(rank[1]),
        node=host,
        time=fields.get("time", "").replace("_", "T") or None,
        groups=tuple((name, value) for name, value in groups.items() if value),
    )
