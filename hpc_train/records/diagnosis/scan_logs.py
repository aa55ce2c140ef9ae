"""Log files -> their failures, endings and collectives; one pass over each."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec.structs import replace

from hpc_train.errors import LogParseError
from hpc_train.model.diagnosis import Evidence
from hpc_train.records.diagnosis.attempts import AGAIN, Observed, Start, StartReader
from hpc_train.records.diagnosis.collective_timeouts import CollectiveReader, Progress, Wait
from hpc_train.records.diagnosis.end_markers import Ending, EndingReader
from hpc_train.records.diagnosis.root_cause import ENDED, OrderedSighting, cause_level
from hpc_train.records.diagnosis.training_completed import EpochReader, StepReader
from hpc_train.records.diagnosis.work_after_error import look_again
from hpc_train.records.find_logs import rank_of
from hpc_train.records.line import Line
from hpc_train.records.line_dispatch import dispatch
from hpc_train.records.log_blocks import blocks
from hpc_train.records.log_file import open_log
from hpc_train.records.nccl.read_nccl_lines import TransportReader
from hpc_train.records.nccl.tally import Tally
from hpc_train.records.signature_matcher import SymptomReader
from hpc_train.records.signatures.base import Sighting
from hpc_train.records.signatures.catalogue import catalogue

_log = logging.getLogger(__name__)
# A job of thousands of ranks repeats the same line thousands of times.
_MOST = 5000
_TAIL = 1 << 16
_LONGEST = 500
# Of the script on a host without a shared folder: the status of the host, as JSON.
_OWN = "hpctrain: status {"


def scan(files: Sequence[Path], names: Sequence[str], tally: Tally | None = None) -> Observed:
    """Read log files; `names` are their names in evidence.

    A file that cannot be read is skipped with a warning. Lines of NCCL are counted in `tally`.

    Raises:
        LogParseError: none of the files can be read.
    """
    gathered = _Gathered(tally)
    problems: list[str] = []
    for number, (path, name) in enumerate(zip(files, names, strict=True)):
        try:
            gathered.read(path, name, number)
        except LogParseError as error:
            problems.append(error.message)
    if problems and len(problems) == len(files):
        raise LogParseError(problems[0])
    for problem in problems:
        _log.warning("%s", problem)
    return Observed(
        sources=tuple(names),
        seen=tuple(gathered.seen),
        endings=tuple(gathered.endings),
        waits=tuple(one for one in gathered.collective_events if isinstance(one, Wait)),
        progress=tuple(one for one in gathered.collective_events if isinstance(one, Progress)),
        counts=dict(gathered.counts),
        failed=tuple(problems),
        starts=tuple(gathered.starts),
    )


class _Gathered:
    """The lists that grow while the files are read."""

    def __init__(self, tally: Tally | None) -> None:
        self.tally = tally
        self.known = catalogue()
        self.seen: list[OrderedSighting] = []
        self.endings: list[tuple[int, Ending]] = []
        self.collective_events: list[Wait | Progress] = []
        self.counts: Counter[str] = Counter()
        self.starts: list[tuple[int, Start]] = []

    def read(self, path: Path, name: str, number: int) -> None:
        symptoms, endings = SymptomReader(name, self.known), EndingReader()
        collectives = CollectiveReader(name)
        nccl = TransportReader(name)
        steps, epochs = StepReader(), EpochReader()
        ended, starts = list[Ending](), StartReader()
        whole = (steps, epochs) if self.tally is None else (steps, epochs, nccl)
        readers = (symptoms, endings, collectives, starts)
        try:
            with open_log(path) as stream:
                for line, asked in dispatch(stream, readers, rank_of(path), whole=whole):
                    if 0 in asked:
                        self.see(symptoms.read(line), number)
                    if 1 in asked:
                        ended += endings.read(line)
                    if 2 in asked and len(self.collective_events) < _MOST:
                        self.collective_events += collectives.read(line)
                    if 3 in asked:
                        self.starts += ((number, start) for start in starts.read(line))
        finally:
            # The lines before the damage are used.
            ended = sorted([*steps.endings, *epochs.endings, *ended], key=lambda one: one.line)
            self.endings += [(number, ending) for ending in ended]
        self.counts += symptoms.counts
        if self.tally is not None:
            self.tally.add(nccl.tally)
        self._again(path, number)

    def _again(self, path: Path, number: int) -> None:
        """Read a log with errors again, for the errors that the job survived, and for restarts."""
        bad = [
            one
            for one in self.seen
            if one.file == number and (one.fatal or cause_level(one) == ENDED)
        ]
        if not bad:
            return
        look = look_again(path, [one.sighting.line for one in bad])
        self.starts += ((number, Start(kind=AGAIN, line=line)) for line in look.begins)
        self.seen = [
            replace(one, work_after=look.work_after.get(one.sighting.line, 0))
            if one.file == number
            else one
            for one in self.seen
        ]

    def see(self, sightings: Iterable[Sighting], number: int) -> None:
        for sighting in sightings:
            signature = self.known.by_id[sighting.signature]
            self.seen.append(OrderedSighting(sighting=sighting, signature=signature, file=number))


def last_lines(path: Path, source: str, lines: int = 8) -> tuple[Evidence, ...]:
    """Return the last lines of a log that are not empty; none if it cannot be read."""
    tail, number = b"", 1
    with suppress(LogParseError), open_log(path) as stream:
        for data, end in blocks(stream):
            start = max(0, end - _TAIL)
            number += tail.count(b"\n") + data.count(b"\n", 0, start)
            tail = bytes(memoryview(data)[start:end])
    found = [
        Evidence(source=source, line=number + count, text=text[:_LONGEST])
        for count, raw in enumerate(tail.split(b"\n"))
        if (text := Line(raw[raw.rstrip().rfind(b"\r") + 1 :]).text.strip())
        and not text.startswith(_OWN)
    ]
    return tuple(found[-lines:])
