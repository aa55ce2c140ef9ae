"""Lines of one log -> sightings of the failure signatures, also in tracebacks and reports."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from msgspec.structs import replace

from hpc_train.diagnosis.signatures import Sighting, Signature, catalogue
from hpc_train.logs.formats.base import Hit
from hpc_train.logs.formats.nccl_benchmarks import NcclTests
from hpc_train.logs.line import Line

_KEPT = 200
_TEXT = 500
# A shell that traces its commands (`set -x`) prints the commands, not their results.
_TRACED = b"+"


class SymptomReader:
    """Finds the failure signatures in one log.

    The first 200 sightings of each signature are returned; `counts` has the total numbers.
    """

    def __init__(self, source: str) -> None:
        self.source, self._known = source, catalogue()
        self.literals = tuple(sorted({*BOX, *map(str.encode, _IGNORED), *self._known.literals}))
        self.counts: Counter[str] = Counter()
        self._clock = Clock()
        self._tracebacks = Tracebacks()
        self._box = TorchrunReport(source)
        self._last_error: set[Speaker] = set()
        self._tests = NcclTests()

    @property
    def wants_next(self) -> bool:
        """Whether a traceback or box is open, or NCCL's last error or the year is expected."""
        multiline = self._box.is_open or self._tracebacks.any_open
        return multiline or bool(self._last_error) or self._clock.wants_year

    def read(self, line: Line) -> list[Sighting]:
        """Return the sightings in a line, with the context from the lines before it."""
        sighting = self._look(line)
        if sighting is None:
            return []
        self.counts[sighting.signature] += 1
        # torchrun prints the first failure last.
        return [sighting] if sighting.is_first or self.counts[sighting.signature] <= _KEPT else []

    def _look(self, line: Line) -> Sighting | None:
        self._clock.look(line.text)
        if line.raw.lstrip().startswith(_TRACED):
            return None
        entry = self._box.read(line)
        raised = self._tracebacks.read(line, entry.rank if entry else None)
        if entry is not None:
            if entry.time:
                self._clock.time(entry.time)
            return entry
        if raised is not None:
            return None if raised is INSIDE else self._of_exception(line, raised)
        return self._of_line(line)

    def _of_line(self, line: Line) -> Sighting | None:
        # A table of nccl-tests begins, of a process that found no other process.
        if b"Rank " in line.raw or b"algbw" in line.raw:
            hits = self._tests.read(line)
            if any(isinstance(hit, Hit) and hit.variant == "apart" for hit in hits):
                return self._forced("nccl_tests_ranks_apart", line)
        speaker = speaker_of(line)
        if speaker in self._last_error:
            self._last_error.discard(speaker)
            return self._match(line) or self._forced("nccl_last_error", line)
        if line.text.endswith("Last error:"):
            self._last_error.add(speaker)
            return None
        return self._match(line)

    def _match(self, line: Line) -> Sighting | None:
        owners, single = self._known.owners, self._known.single
        for one in sorted({owner for literal in line.held for owner in owners.get(literal, ())}):
            match = single[one].search(line.text)
            if match:
                return self._sighting(single[one], line, match.groupdict())
        return None

    def _forced(self, name: str, line: Line) -> Sighting | None:
        signature = self._known.by_id[name]
        match = signature.search(line.text.strip())
        return self._sighting(signature, line, match.groupdict()) if match else None

    def _of_exception(self, line: Line, raised: Raised) -> Sighting | None:
        known = self._match(line)
        if known is None and raised.ignored:
            return None
        sighting = known or self._forced("python_exception", line)
        if sighting is None:
            return None
        # An assertion without a message is described by its source line.
        code = raised.code if raised.code.startswith("assert ") else ""
        fields = {"file": raised.file, "line": raised.line, "caller": raised.caller, "code": code}
        frame = tuple((name, value) for name, value in fields.items() if value)
        rank = raised.rank if sighting.rank is None or raised.rank is not None else sighting.rank
        return replace(sighting, groups=(*sighting.groups, *frame), rank=rank)

    def _sighting(
        self, signature: Signature, line: Line, stated: Mapping[str, str | None]
    ) -> Sighting:
        if self.counts[signature.id] >= _KEPT:
            # The sighting is only counted.
            return Sighting(of=signature, source=self.source, line=line.number, text="")
        groups = {name: value for name, value in stated.items() if value is not None}
        rank = line.rank
        if rank is None and groups.get("rank", "").isdecimal():
            rank = int(groups["rank"])
        text = line.text.strip()
        # The host in a line of NCCL, Slurm or Open MPI.
        hosts = (match["node"] for pattern in _NODES if (match := pattern.search(text)))
        return Sighting(
            of=signature,
            source=self.source,
            line=line.number,
            text=text[:_TEXT],
            rank=rank,
            node=groups.get("node") or next(hosts, None),
            time=self._clock.time(text),
            groups=tuple(groups.items()),
        )


# `2025-01-31T12:00:00`, `2025-01-31 12:00:00,123`, torchrun's `2025-01-31_12:00:00`.
_FULL = re.compile(
    r"(?<!\d)(?P<date>(?:19|20)\d\d-[01]\d-[0-3]\d)[T _]"
    r"(?P<time>[0-2]\d:[0-5]\d:[0-6]\d)(?:[.,](?P<part>\d{1,9}))?"
)
# glog's `[E131 12:00:00.123`, `W0131 12:00:00.123`: no year.
_GLOG = re.compile(
    r"(?:^|[\[ ])[IWEFCV](?P<month>\d{1,2})(?P<day>[0-3]\d) "
    r"(?P<time>[0-2]\d:[0-5]\d:[0-6]\d)(?:\.(?P<part>\d{1,9}))?"
)
# Number of lines at the beginning of a log in which the year is searched.
_FIRST = 200
# A stamp that is not near the beginning of a line is not the time of the line.
_NEAR = 400
_NODES = (
    re.compile(r"^(?:\[[^\]]{4,40}\] )?(?P<node>[A-Za-z][\w.-]{0,80}):\d{1,9}:\d{1,9} \["),
    re.compile(r"\*\*\* (?:JOB|STEP) \S{1,40} ON (?P<node>\S{1,80}) "),
    re.compile(r"^(?:srun|slurmstepd): error: (?P<node>[^\s:]{1,80}): task"),
    re.compile(r"^\[(?P<node>[A-Za-z][\w.-]{0,80}):\d{1,9}\] "),
)


class Clock:
    """Reads the times of one log; a stamp without a year gets the year of the stamps before it."""

    def __init__(self) -> None:
        self._year: str | None = None
        self._left = _FIRST

    @property
    def wants_year(self) -> bool:
        """Whether the year is unknown, and the lines at the beginning of the log are still read."""
        return self._year is None and self._left > 0

    def look(self, text: str) -> None:
        """Take the year from a line, if the year is unknown."""
        if self.wants_year:
            self._left -= 1
            self.time(text)

    def time(self, text: str) -> str | None:
        """Return the time in a line, as ISO 8601 text."""
        start = text[:_NEAR]
        if found := _FULL.search(start):
            self._year, date = found["date"][:4], found["date"]
        else:
            found = _GLOG.search(start)
            if found is None or self._year is None or not 1 <= int(found["month"]) <= 12:
                return None
            date = f"{self._year}-{int(found['month']):02}-{found['day']}"
        part = found["part"]
        return f"{date}T{found['time']}" + (f".{part}" if part else "")


# Lines of several ranks -> Python tracebacks, at most one open per rank.

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
BOX = (
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
_RANK_IN_BOX = re.compile(r"^(\d{1,7}) \(local_rank: (\d{1,5})\)")
_EXIT = re.compile(r"^(-?\d{1,6}) \(pid: (\d{1,10})\)(?: +\((SIG\w{2,10})\))?")
_SIGNAL = re.compile(r"^Signal \d{1,3} \((SIG\w{2,10})\)")
_NOTHING = "To enable traceback"
_MOST_ENTRIES = 4096
# Before torch 1.10 the fields of an entry are ordinary words: only a header identifies them.
_LINES = 24


class TorchrunReport:
    """Reads the reports in one log, which several agents may write at the same time."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._fields: dict[Speaker, dict[str, str]] = {}
        self._lines: dict[Speaker, int] = {}
        self._root: set[Speaker] = set()
        self._left = 0

    @property
    def is_open(self) -> bool:
        """Whether the next lines may belong to an entry."""
        return self._left > 0

    def read(self, line: Line) -> Sighting | None:
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
        if field is None or len(self._fields) > _MOST_ENTRIES:
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
            return self._entry(fields, self._lines.pop(speaker, line.number), first=first)
        return None

    def _entry(self, fields: dict[str, str], line: int, *, first: bool) -> Sighting | None:
        rank, code = (
            _RANK_IN_BOX.match(fields.get("rank", "")),
            _EXIT.match(fields.get("exitcode", "")),
        )
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
        text = f"rank {rank[1]}{where}: exitcode {fields['exitcode']}{suffix}"
        return Sighting(
            of=catalogue().by_id["torchrun_child_failed_rank"],
            source=self._source,
            line=line,
            text=text[:_TEXT],
            rank=int(rank[1]),
            node=host,
            time=fields.get("time", "").replace("_", "T") or None,
            groups=tuple((name, value) for name, value in groups.items() if value),
        )
