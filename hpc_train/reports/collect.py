"""Measurements as CSV, JSON Lines or Parquet; the runs and records of a folder."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec

from hpc_train.base.errors import LogParseError, StoreError
from hpc_train.base.extras import need
from hpc_train.base.files import is_folder, is_regular
from hpc_train.base.metrics import UNITS
from hpc_train.foreign.classify_inputs import classify
from hpc_train.jobs.log_selection import Search, StatedScope
from hpc_train.logs.collect import (
    apart_warnings,
    foreign_runs,
    is_apart,
    logs_of,
    nothing,
    packs_in,
    wanted,
)
from hpc_train.logs.formats.pattern import own_patterns
from hpc_train.logs.log_file import log_files
from hpc_train.logs.read_log import (
    GUESSING,
    Log,
    ParseStats,
    Wanted,
    parsers_of,
    pressed,
    stated,
    unpressed,
    with_scope,
)
from hpc_train.logs.record import Pack, Record, csv_rows, json_lines, packs_of, read_record_file
from hpc_train.runs.expected_runs import ExpectedStudy, expected_study, single_jobs, without_copies
from hpc_train.runs.json_files import read_cache, write_cache, write_file
from hpc_train.runs.run import JobState, Run
from hpc_train.runs.run_folders import read_study

if TYPE_CHECKING:
    from hpc_train.logs.formats.base import LogParser

_DECODE = msgspec.json.Decoder(Record).decode_lines
_log = logging.getLogger(__name__)


def run_records(run: Run, options: Wanted, stats: ParseStats) -> Iterator[Pack]:
    """Yield a run's records: from its logs or, if they are deleted, from records.jsonl.

    Those of a finished run are stored in records.jsonl; a failure to write is ignored.
    """
    folder, own_stats = run.folder, ParseStats()
    if not is_folder(folder.logs):
        yield from packs_of(_stored(folder.records))
        return
    logs = logs_of(folder.run_id, [folder.logs], folder.path)
    lasts = options.usual and run.state.finished and not _has_all(folder.records, logs)
    kept = []
    for pack in packs_in(logs, options, own_stats):
        if lasts:
            kept.append(pressed(pack))
        yield pack
    stats.add(own_stats)
    if lasts:
        write_cache(folder.records, (json_lines(unpressed(pack)).encode() for pack in kept))


def _stored(path: Path) -> Sequence[Record]:
    try:
        return read_cache(path, _DECODE) or ()
    except LogParseError:
        # Slower, but reports the damaged line, or that a newer hpctrain wrote it.
        return read_record_file(path)


def _has_all(records: Path, logs: Sequence[Log]) -> bool:
    """Whether the records were written after the logs."""
    if not is_regular(records):
        return False
    written = records.stat().st_mtime_ns
    return all(log.path.stat().st_mtime_ns <= written for log in logs)


class StudyRuns(NamedTuple):
    """A study, its runs that count, and the options for reading their logs."""

    study: ExpectedStudy
    runs: tuple[Run, ...]
    options: Wanted

    def packs(self, stats: ParseStats) -> Iterator[Pack]:
        """Yield the records of all runs; `stats` is updated.

        A run that cannot be read is recorded there and does not affect the others.

        Raises:
            LogParseError: there is no record, and a run cannot be read.
        """
        errors: list[LogParseError] = []
        empty = True
        for run in self.runs:
            try:
                for pack in run_records(run, self.options, stats):
                    empty = False
                    if has_one_rank(run):
                        # A rate of unknown scope is that of the job.
                        pack.kinds = [with_scope(kind, "global") for kind in pack.kinds]
                    yield pack
            except LogParseError as failure:
                errors.append(failure)
        if empty and errors:
            raise errors[0]
        for error in errors:
            if error.message not in stats.failed.values():
                _log.warning("%s", error.message)
                stats.failed[error.message] = error.message


def has_one_rank(run: Run) -> bool:
    """Whether a run is known to have one rank."""
    return run.manifest is not None and run.manifest.plan.topology.world_size == 1


def study_runs(logs: Sequence[Path], homes: Sequence[Path], options: Wanted) -> StudyRuns:
    """Return the study of one folder; `logs` are foreign logs given with it.

    Raises:
        StoreError: study.json is damaged, or several studies are mixed.
    """
    from hpc_train.runs.run_states import runs_below

    if logs:
        raise StoreError("foreign logs and run folders cannot be put into one table")
    if len(homes) > 1:
        names = ", ".join(home.name for home in homes)
        raise StoreError(f"a table contains one study, not {len(homes)}: {names}")
    (runs, copies), manifest = without_copies(runs_below(homes[0])), read_study(homes[0])
    if manifest:
        study = expected_study(manifest, runs, _problem_of)
    else:
        study = single_jobs(homes[0], runs, _problem_of)
    study = msgspec.structs.replace(study, notes=(*study.notes, *copies))
    expected_ids = {run.run_id for run in study.runs}
    own = tuple(run for run in runs if run.folder.run_id in expected_ids and not run.newer)
    return StudyRuns(study, own, options.with_patterns(manifest.spec.patterns if manifest else ()))


def deleted_logs(run: Run) -> str:
    """Return that the logs of a run were deleted; empty if there are some, or their records."""
    logs = run.folder.logs
    stored = not is_folder(logs) and is_regular(run.folder.records)
    # The executor writes one into every run folder.
    return "" if stored or log_files([logs]) else f"its logs were deleted: {logs}"


def _problem_of(run: Run) -> str:
    """Return why a run has no result, or an empty string."""
    if run.state is JobState.COMPLETED:
        return run.problem or deleted_logs(run)
    # Signatures are slow to load, and runs that completed need none.
    from hpc_train.diagnosis.diagnose_runs import problem_of

    return problem_of(run)


class Collection:
    """Single-pass iterator of measurements; at its end `stats` and `counts` (by run) are complete.

    `problems` maps the runs of hpctrain to their state, `folders` are those of their logs.
    """

    def __init__(
        self,
        packs: Iterator[Pack],
        stats: ParseStats,
        problems: dict[str, str],
        folders: Sequence[Path] = (),
    ) -> None:
        self.stats = stats
        self.counts = Counter(dict.fromkeys(problems, 0))
        self.problems = problems
        self._packs = packs
        self._folders = folders
        self._unconnected: list[Record] = []

    def __iter__(self) -> Iterator[Record]:
        """Yield the records."""
        for pack in self.packs():
            yield from pack.records()

    def packs(self) -> Iterator[Pack]:
        """Yield the records in packs, which are faster to write than single records."""
        for pack in self._packs:
            self.counts[pack.kinds[0].run] += len(pack)
            if any(map(is_apart, pack.kinds)):
                self._unconnected += filter(is_apart, pack.records())
            yield pack

    def summary(self) -> Iterator[str]:
        """Yield messages on the formats that were found, and on missing results."""
        for name, kind in self.stats.known.items():
            first = f"{kind.source}:{kind.line}: {kind.text}"
            yield f"{name}: {kind.lines} line{'s' * (kind.lines != 1)}, the first {first}"
        runs = sum(count > 0 for count in self.counts.values())
        number = self.counts.total()
        yield f"{number} record{'s' * (number != 1)} of {runs} run{'s' * (runs != 1)}"
        for run, problem in self.problems.items():
            if not self.counts[run]:
                yield f"no record: {run}  {problem}"
        from hpc_train.logs.pattern_suggestions import suggested_for

        if not runs and (found := suggested_for(log_files(self._folders))):
            yield f"{found[0]}:{found[1][0].line}: {found[1][0].words}"
        for warning in (*self.stats.refusals(), *apart_warnings(self._unconnected)):
            yield f"warning: {warning}"


def with_patterns(search: Search, regexes: Sequence[str], scope: StatedScope) -> Search:
    """Return options with the patterns of a user.

    Raises:
        SpecError: a regex is invalid, or names no metric.
    """
    return msgspec.structs.replace(search, patterns=own_patterns(regexes, scope))


def collection(words: Sequence[str], search: Search) -> Collection:
    """Resolve arguments: a study, the runs of a job, a run, or any log files.

    Raises:
        HpcTrainError: as `report_inputs`; errors of reading are raised during iteration.
    """
    stats, options = ParseStats(), wanted(search.form, search.patterns)
    if not words:
        raise LogParseError("no log was given", "name a log, a folder of logs, a run or a study")
    paths, homes = classify(words, search.root)
    if homes:
        runs = study_runs(paths, homes, options)
        return Collection(
            runs.packs(stats),
            stats,
            {run.run_id: f"{run.state}  {run.problem}" for run in runs.study.runs},
            [run.folder.logs for run in runs.runs if run.state is JobState.COMPLETED],
        )
    logs = list(chain.from_iterable(foreign_runs(paths).values()))
    packs = packs_in(logs, options, stats)
    # Logs without any record are an error that names similar formats.
    first = next(packs, None)
    if first is None:
        raise nothing(logs, stats, search.form)
    return Collection(chain((first,), packs), stats, {})


def formats_text(form: str = "auto") -> str:
    """Return the supported formats, a line each, or what one of them states, with a sample."""
    if form != "auto":
        return "".join(_explained(name, one) for name, one in parsers_of(wanted(form)).items())
    parsers = parsers_of(wanted("auto")) | parsers_of(wanted(GUESSING))
    width = max(map(len, parsers))
    return "".join(f"{name:{width}}  {parser.title}\n" for name, parser in parsers.items())


def _explained(name: str, parser: LogParser) -> str:
    states = [
        f"    {metric} [{UNITS[metric]}]: {scope}" for metric, scope in stated(parser).items()
    ]
    sample = [f"    | {line}" for line in parser.sample.splitlines()]
    return "\n".join([f"{name}: {parser.title}", *states, *sample]) + "\n"


RecordFormat = Literal["csv", "jsonl"]
_ENDINGS: dict[str, RecordFormat] = {".csv": "csv", ".jsonl": "jsonl", ".json": "jsonl"}


def records_text(packs: Iterable[Pack], form: RecordFormat) -> Iterator[str]:
    """Yield records as text, many lines at a time."""
    source = iter(packs)
    # Reading the first record may raise an error; then nothing is written.
    first = next(source, None)
    whole = source if first is None else chain((first,), source)
    if form == "csv":
        yield ",".join(Record.__struct_fields__) + "\n"
        yield from csv_rows(whole)
    else:
        yield from map(json_lines, whole)


def check_ending(path: Path) -> None:
    """Refuse an unknown file extension before any log is read.

    Raises:
        StoreError: the extension is unknown.
        MissingExtraError: Parquet without pyarrow or pandas.
    """
    if path.suffix != ".parquet" and path.suffix not in _ENDINGS:
        raise StoreError(f"{path}: the extension must be .csv, .jsonl or .parquet")
    if path.suffix == ".parquet":
        need("Parquet", "parquet", "use -o FILE.csv")


def write_records(packs: Iterable[Pack], path: Path) -> None:
    """Write records to a file, one pack at a time, in the format of its extension.

    Raises:
        StoreError: an unknown extension, or a file that cannot be written.
        MissingExtraError: Parquet without pyarrow.
    """
    check_ending(path)
    if path.suffix == ".parquet":
        from hpc_train.foreign.parquet import parquet_bytes, records_frame

        write_file(path, parquet_bytes(records_frame(packs)))
        return
    write_file(path, (text.encode() for text in records_text(packs, _ENDINGS[path.suffix])))
