"""Foreign results in logs, records or tables -> runs and records."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from hpc_train.errors import LogParseError, nearest
from hpc_train.imports.csv_table import ResultTable, table_of
from hpc_train.imports.duplicates import refuse_same_files
from hpc_train.imports.points_file import Points, logs_named, read_points
from hpc_train.imports.stated_sizes import sized
from hpc_train.imports.table_file import read_table
from hpc_train.imports.workbook import sheet_of
from hpc_train.model.expected_study import ExpectedRun, ExpectedStudy, undeclared
from hpc_train.model.log_selection import Search
from hpc_train.model.record import UNITS
from hpc_train.model.study import Warmup
from hpc_train.model.submission import JobState
from hpc_train.model.transport import Transport
from hpc_train.pipeline.classify_inputs import TABLE, one_kind
from hpc_train.records.collect import packs_in, wanted
from hpc_train.records.find_logs import rank_of
from hpc_train.records.foreign_logs_by_run import foreign_runs, nothing
from hpc_train.records.mlperf_run import MlperfRun, mlperf_run, scaling_factor
from hpc_train.records.parse_stats import ParseStats
from hpc_train.records.read_log import Log, Wanted
from hpc_train.records.record_file import read_record_file
from hpc_train.tables.time_to_accuracy_formulas import LEAST_RUNS, score

if TYPE_CHECKING:
    from hpc_train.tables.record_arrays import RecordArrays

# Metrics of network benchmarks and LINPACK, which are not trainings.
_OF_BENCHMARKS = frozenset(
    {"algbw", "busbw", "gflops", "latency", "residual", "solve_time", "world_size", "wrong_values"}
)
# The first interval of a framework includes compilation and the initialisation of NCCL.
_FIRST = Warmup(steps=1)


class ForeignResults(NamedTuple):
    """Runs with their records, transports and files.

    `inputs` are all files that were read.
    """

    study: ExpectedStudy
    records: RecordArrays
    transports: dict[str, Transport | None]
    files: dict[str, list[Path]]
    inputs: tuple[Path, ...] = ()


def load_foreign(paths: Sequence[Path], search: Search, stats: ParseStats) -> ForeignResults:
    """Read the results at the paths, with the sizes in a file; `stats` is updated.

    Raises:
        LogParseError: paths of several kinds, or a file with an error.
    """
    kind = one_kind(paths, search.form)
    if kind in ("tables", "records") and search.form not in ("auto", TABLE):
        # Only logs have a format, but an unknown format is always an error.
        wanted(search.form)
    if search.sheet and kind != "tables":
        raise LogParseError(f"{paths[0]}: not an Excel workbook, so it has no sheets")
    if search.patterns and kind in ("tables", "records"):
        raise LogParseError(f"{paths[0]}: not a log, so --pattern reads no line of it")
    if kind == "tables":
        if search.points is not None:
            raise LogParseError(f"{search.points}: a table has the sizes of its runs in columns")
        tables = [_table(path, search.sheet) for path in paths]
        # Numpy and pandas are imported here, so that errors above are reported at once.
        from hpc_train.imports.runs_from_table import table_study
        from hpc_train.tables.record_arrays import record_arrays

        study, records = table_study(tables)
        files = tuple(dict.fromkeys(sheet_of(path)[0] for path in paths))
        return ForeignResults(study, record_arrays(records), {}, {}, files)
    points_path = paths[0] if kind == "points" else search.points
    points = read_points(points_path) if points_path is not None else None
    if kind == "records":
        results = _of_records(paths)
    else:
        logs = logs_named(points) if kind == "points" and points else paths
        options = wanted(search.form, search.prefix, search.patterns)
        results = _of_logs(logs, options, stats, allow_failed=search.allow_failed)
    if points is None or points_path is None:
        return results
    return _sized(results, points)._replace(inputs=(points_path, *results.inputs))


def _table(path: Path, sheet: str) -> ResultTable:
    if path.suffix != ".parquet":
        return read_table(path, sheet)
    from hpc_train.tables.parquet import read_texts

    names, rows = read_texts(path)
    return table_of(path, 1, names, enumerate(rows, start=2))


def _sized(results: ForeignResults, points: Points) -> ForeignResults:
    from hpc_train.tables.record_arrays import joined_arrays, record_arrays
    from hpc_train.tables.run_level_records import run_level_records

    files = {run.run_id: results.files.get(run.run_id, []) for run in results.study.runs}
    study, more = sized(results.study, run_level_records(results.records), points, files)
    return results._replace(
        study=study, records=joined_arrays((results.records, record_arrays(more)))
    )


def _of_logs(
    paths: Sequence[Path], options: Wanted, stats: ParseStats, *, allow_failed: bool
) -> ForeignResults:
    # Tables and records need no diagnosis, and its signatures are slow to load.
    from hpc_train.records.diagnosis.diagnose import log_ends
    from hpc_train.tables.record_arrays import gathered
    from hpc_train.tables.run_level_records import metrics_of

    runs = foreign_runs(paths)
    logs = list(chain.from_iterable(runs.values()))
    records = gathered(packs_in(logs, options, stats))
    ends = log_ends(runs, stats.failed)
    transports = {run: end.transport for run, end in ends.items()}
    if not len(records.value) and not any(transports.values()):
        raise nothing(logs, stats)
    ranks = {
        run: 1 + max([stats.ranks.get(run, -1), *(_rank(log) for log in files)])
        for run, files in runs.items()
    }
    study = _study("logs", ranks, metrics_of(records))
    failures = {run: end.failure for run, end in ends.items() if end.failure}
    study = _failed(study, failures, allow_failed=allow_failed)
    notes = (*study.notes, *mlperf_notes(log.path for log in logs))
    files = {run: [log.path for log in own] for run, own in runs.items()}
    study = msgspec.structs.replace(study, notes=notes)
    return ForeignResults(study, records, transports, files, tuple(log.path for log in logs))


def _failed(
    study: ExpectedStudy, failures: Mapping[str, str], *, allow_failed: bool
) -> ExpectedStudy:
    """Return the study with failed logs marked, or noted if they are allowed."""
    counted = [run.run_id for run in study.runs if run.run_id in failures and not run.problem]
    if allow_failed:
        notes = (f"counted although its log shows a failure: {r}: {failures[r]}" for r in counted)
        return msgspec.structs.replace(study, notes=(*study.notes, *notes))
    runs = tuple(
        msgspec.structs.replace(run, state=JobState.FAILED.value, problem=failures[run.run_id])
        if run.run_id in failures
        else run
        for run in study.runs
    )
    return msgspec.structs.replace(study, runs=runs)


def _of_records(paths: Sequence[Path]) -> ForeignResults:
    refuse_same_files(paths)
    from hpc_train.tables.record_arrays import joined_arrays
    from hpc_train.tables.run_level_records import metrics_of

    records = joined_arrays([_read_records(path) for path in paths])
    runs = metrics_of(records)
    if not runs:
        raise LogParseError(f"{paths[0]}: no record in it", "hpctrain collect LOG… -o FILE")
    study = _study(paths[0].stem, dict.fromkeys(runs, 0), runs)
    study = msgspec.structs.replace(study, notes=(*study.notes, *_misspelt(paths[0], runs)))
    return ForeignResults(study, records, {}, {}, tuple(paths))


def _misspelt(path: Path, runs: Mapping[str, AbstractSet[str]]) -> Iterator[str]:
    """Yield notes on unknown metrics that are similar to a known one."""
    for metric in sorted(set().union(*runs.values()) - UNITS.keys()):
        if near := nearest(metric, UNITS):
            yield f"{path}: the metric {metric!r} is not known{near}"


def _read_records(path: Path) -> RecordArrays:
    from hpc_train.tables.record_arrays import record_arrays

    if path.suffix != ".parquet":
        return record_arrays(read_record_file(path))
    from hpc_train.tables.parquet import read_records

    return record_arrays(read_records(path))


def _study(
    name: str,
    ranks: Mapping[str, int],
    metrics: Mapping[str, AbstractSet[str]],
) -> ExpectedStudy:
    """Return a study of runs that are known only by their logs."""
    expected = tuple(
        ExpectedRun(
            run_id=run,
            axes={},
            repetition=number,
            topology=None,
            state=(JobState.COMPLETED if run in metrics else JobState.UNKNOWN).value,
            problem=_problem(metrics.get(run, frozenset())),
            ranks=ranks[run],
        )
        for number, run in enumerate(ranks, start=1)
    )
    return undeclared(name, expected, _FIRST)


def _rank(log: Log) -> int:
    rank = rank_of(log.path)
    return -1 if rank is None else rank


def _problem(metrics: AbstractSet[str]) -> str:
    """Return why a log has no result, if its contents show it."""
    if not metrics:
        return "no line of a known format; see hpctrain collect"
    if metrics <= _OF_BENCHMARKS:
        names = ", ".join(sorted(metrics - {"world_size"}))
        if not names:
            return "a number of ranks, but no time or rate of training; see hpctrain help events"
        return f"a benchmark ({names}), not a training; hpctrain collect prints its values"
    return ""


# Names of the logs of one result in the rules of MLPerf.
_RESULTS = "result_*.txt"


def mlperf_notes(logs: Iterable[Path]) -> Iterator[str]:
    """Yield the score of each folder of results whose runs are all among the logs.

    A part of a result has no score, because its best and worst runs are unknown.
    """
    chosen = set(logs)
    for folder in sorted({path.parent for path in chosen if path.match(_RESULTS)}):
        files = sorted(folder.glob(_RESULTS))
        if len(files) >= LEAST_RUNS and chosen.issuperset(files):
            yield from _note(folder, files)


def _note(folder: Path, files: list[Path]) -> Iterator[str]:
    try:
        runs, factor = [mlperf_run(path) for path in files], scaling_factor(folder)
    except LogParseError as error:
        yield f"{folder}: no MLPerf score: {error}"
        return
    times = [run.time_to_train_s if run.status == "success" else None for run in runs]
    # Other programs may use the same file names.
    if any(run.benchmark for run in runs):
        yield f"{_result(runs[0])} ({folder}): MLPerf score {_minutes(times, factor)}"


def _result(run: MlperfRun) -> str:
    return f"{run.benchmark} on {run.platform}" if run.platform else run.benchmark


def _minutes(times: list[float | None], factor: float) -> str:
    seconds, failed = score(times, factor), times.count(None)
    scaled = f", times the factor {factor:g} of scaling.json" if factor != 1 else ""
    lost = f", {failed} of them without success" if failed else ""
    if not math.isfinite(seconds):
        return f"none: {failed} of {len(times)} runs without success"
    mean = f"by the rules' mean of {len(times)} runs{lost}{scaled}"
    return f"{seconds / 60:.3f} minutes to train, {mean}"
