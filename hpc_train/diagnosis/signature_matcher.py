"""Lines of one log -> sightings of the failure signatures."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

from msgspec.structs import replace

from hpc_train.diagnosis.signatures import Sighting, Signature, catalogue
from hpc_train.diagnosis.tracebacks import (
    INSIDE,
    LITERALS as BOX,
    Raised,
    Speaker,
    TorchrunReport,
    Tracebacks,
    speaker_of,
)
from hpc_train.logs.formats.base import Hit
from hpc_train.logs.formats.nccl_benchmarks import NcclTests
from hpc_train.logs.line import Line

_IGNORED = (b"Exception ignored in", b"--- Logging error ---")
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
        self.literals = tuple(sorted({*BOX, *_IGNORED, *self._known.literals}))
        self.counts: Counter[str] = Counter()
        self._clock = Clock()
        self._tracebacks = Tracebacks()
        self._box = TorchrunReport()
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
            return Sighting(
                of=self._known.by_id["torchrun_child_failed_rank"],
                source=self.source,
                line=entry.line,
                text=entry.text[:_TEXT],
                rank=entry.rank,
                node=entry.node,
                time=entry.time,
                groups=entry.groups,
            )
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
        return Sighting(
            of=signature,
            source=self.source,
            line=line.number,
            text=text[:_TEXT],
            rank=rank,
            node=groups.get("node") or node_of(text),
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


def node_of(text: str) -> str | None:
    """Return the host in a line of NCCL, Slurm or Open MPI."""
    matches = (pattern.search(text) for pattern in _NODES)
    return next((match["node"] for match in matches if match), None)
