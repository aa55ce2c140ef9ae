"""Arguments of the command line -> measurements, as CSV, JSON Lines or Parquet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from hpc_train.base.errors import LogParseError, StoreError
from hpc_train.base.extras import need
from hpc_train.base.metrics import UNITS
from hpc_train.foreign.classify_inputs import classify
from hpc_train.jobs.log_selection import Search, StatedScope
from hpc_train.logs.collect import apart_warnings, is_apart, packs_in, wanted
from hpc_train.logs.foreign_logs_by_run import foreign_runs, nothing
from hpc_train.logs.formats.pattern import own_patterns
from hpc_train.logs.read_log import GUESSING, ParseStats, parsers_of, stated
from hpc_train.logs.record import Pack, Record
from hpc_train.logs.record_file import csv_rows, json_lines
from hpc_train.reports.study_runs import study_runs
from hpc_train.reports.words import counted
from hpc_train.runs.json_files import write_file

if TYPE_CHECKING:
    import pandas as pd

    from hpc_train.logs.formats.base import LogParser


class Collection:
    """Single-pass iterator of measurements; at its end `stats` and `counts` (by run) are complete.

    `problems` maps the runs of hpctrain to their state.
    """

    def __init__(self, packs: Iterator[Pack], stats: ParseStats, problems: dict[str, str]) -> None:
        self.stats = stats
        self.counts = Counter(dict.fromkeys(problems, 0))
        self.problems = problems
        self._packs = packs
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
            yield f"{name}: {counted(kind.lines, 'line')}, the first {first}"
        runs = sum(count > 0 for count in self.counts.values())
        yield f"{counted(self.counts.total(), 'record')} of {counted(runs, 'run')}"
        for run, problem in self.problems.items():
            if not self.counts[run]:
                yield f"no record: {run}  {problem}"
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
    stats, options = ParseStats(), wanted(search.form, search.prefix, search.patterns)
    if not words:
        raise LogParseError("no log was given", "name a log, a folder of logs, a run or a study")
    paths, homes = classify(words, search.root)
    if homes:
        runs = study_runs(paths, homes, options)
        return Collection(
            runs.packs(stats),
            stats,
            ({run.run_id: f"{run.state}  {run.problem}" for run in runs.study.runs}),
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


def frame_of(found: Collection) -> pd.DataFrame:
    """Return the records of a collection as a frame; `attrs` lists files with errors.

    Raises:
        LogParseError: no file can be read, or no line of them.
    """
    from hpc_train.foreign.parquet import records_frame

    frame = records_frame(found.packs())
    frame.attrs["unreadable"] = list(found.stats.failed.values())
    return frame


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
        from hpc_train.foreign.parquet import parquet_bytes

        write_file(path, parquet_bytes(packs))
        return
    write_file(path, (text.encode() for text in records_text(packs, _ENDINGS[path.suffix])))
