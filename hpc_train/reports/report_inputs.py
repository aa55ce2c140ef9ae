"""Run folders and foreign results -> the runs of a report, and their records."""

from __future__ import annotations

import functools
import logging
import math
import shlex
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from hpc_train.base.errors import HpcTrainError, LogParseError, SpecError, nearest
from hpc_train.base.metrics import UNITS
from hpc_train.base.value import Value
from hpc_train.foreign.classify_inputs import (
    TABLE,
    classify,
    one_kind,
    refuse_same_files,
    refuse_same_logs,
)
from hpc_train.foreign.csv_table import ResultTable, table_of
from hpc_train.foreign.points_file import Points, in_order, logs_named, read_points, sized
from hpc_train.foreign.table_file import read_table
from hpc_train.foreign.workbook import sheet_of
from hpc_train.jobs.log_selection import Search
from hpc_train.jobs.study import Warmup
from hpc_train.logs.collect import apart_warnings, packs_in, wanted
from hpc_train.logs.foreign_logs_by_run import foreign_runs, nothing
from hpc_train.logs.formats.mlperf import MlperfRun, mlperf_run, scaling_factor
from hpc_train.logs.log_file import log_files, rank_of
from hpc_train.logs.pattern_suggestions import suggested_for
from hpc_train.logs.read_log import GUESSING, Log, ParseStats, Wanted
from hpc_train.logs.record import RESULTS, Record
from hpc_train.logs.record_file import read_record_file
from hpc_train.nccl.transport import (
    NetworkOf,
    run_transport,
    site_network,
    transport_notes,
)
from hpc_train.plans.queue_limits import partition_named
from hpc_train.reports.gpu_peaks import gpu_peaks
from hpc_train.reports.read_report_options import exclusions, without
from hpc_train.reports.study_runs import StudyRuns, study_runs
from hpc_train.runs.conditions import conditions_of
from hpc_train.runs.expected_runs import ExpectedRun, ExpectedStudy, undeclared
from hpc_train.runs.nccl_transport import Transport
from hpc_train.runs.run import JobState, Run
from hpc_train.runs.run_folders import homes, is_run, run_folders
from hpc_train.scaling.largest_message_bandwidth import headline, share_of_link
from hpc_train.scaling.time_to_accuracy_by_point import LEAST_RUNS, score
from hpc_train.sites.load import load_site

if TYPE_CHECKING:
    from hpc_train.scaling.record_arrays import RecordArrays

_log = logging.getLogger(__name__)


def selection(
    root: Path,
    *,
    form: str = "auto",
    points: Path | None = None,
    exclude: Sequence[str] = (),
    allow_failed: bool = False,
) -> Search:
    """Return the runs and logs of a report; `exclude` has words like `1-srun-r2=node 3 was down`.

    Raises:
        SpecError: an exclusion without a reason.
    """
    return Search(
        root=root,
        form=form,
        points=points,
        excluded=exclusions(exclude),
        allow_failed=allow_failed,
    )


# Words of a command that a next one repeats.
_REPEATED = 4
_MOST = 10**9


def sizes_in_order(given: Mapping[str, str | None]) -> dict[str, tuple[int, ...]]:
    """Return the numbers of options such as `--gpus 8,16`, by their names.

    Raises:
        SpecError: a number that is not a whole one from 1.
    """
    sizes: dict[str, tuple[int, ...]] = {}
    for name, text in given.items():
        words = [] if text is None else [word.strip() for word in text.split(",")]
        if not all(word.isascii() and word.isdigit() and 0 < int(word) <= _MOST for word in words):
            hint = f"as in --{name} 8,16"
            raise SpecError(f"--{name} {text}: a whole number from 1 for each log is needed", hint)
        if words:
            sizes[name] = tuple(map(int, words))
    return sizes


class ReportInputs(Value, frozen=True, kw_only=True):
    """Requested runs and measurements; `unreadable` lists logs with errors.

    `own` are the runs of the study that have a folder. `transports` are what NCCL used in each run,
    by its name, and `files` the foreign logs and tables that were read.
    """

    study: ExpectedStudy
    records: RecordArrays
    warnings: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()
    own: tuple[Run, ...] = ()
    transports: Mapping[str, Transport] = MappingProxyType({})
    files: tuple[Path, ...] = ()


def report_inputs(
    words: Sequence[str], search: Search, stats: ParseStats | None = None
) -> ReportInputs:
    """Read a study, a job's runs, one run, or any logs, records and tables; `stats` is updated.

    Raises:
        UnknownNameError: an argument is neither a run nor a file, or there is no such format.
        StoreError: study.json is damaged, or several studies are mixed.
        LogParseError: no log is given, logs cannot be read, or contain no known format.
        ReportError: an excluded run does not exist. LogParseError: a job is given twice.
    """
    if not words:
        raise LogParseError("no log was given", "name a log, a folder of logs, a run or a study")
    for word in words:
        _refuse_all_results(Path(word))
    paths, homes = classify(words, search.root)
    stats = ParseStats() if stats is None else stats
    if not homes:
        return _stated(_foreign(paths, search, stats), words, search)
    if search.points is not None or search.sizes:
        given = search.points or f"--{next(iter(search.sizes))}"
        raise LogParseError(f"{given}: the sizes of hpctrain's runs are known")
    options = wanted(search.form, search.prefix, search.patterns)
    found = _own(study_runs(paths, homes, options), stats)
    study = without(found.study, search.excluded, homes[0])
    return _stated(msgspec.structs.replace(found, study=study), words, search)


def _stated(found: ReportInputs, words: Sequence[str], search: Search) -> ReportInputs:
    """Return the inputs with what a person states, and with the words that a command repeats."""
    from hpc_train.scaling.record_arrays import with_rates

    sizes = "".join(f" --{name} {','.join(map(str, n))}" for name, n in search.sizes.items())
    batch, scaling = search.batch or found.study.batch, search.scaling or found.study.scaling
    study = msgspec.structs.replace(
        found.study,
        asked=shlex.join(words[:_REPEATED]) + " …" * (len(words) > _REPEATED) + sizes,
        scaling=scaling or ("strong" if batch else None),
        batch=batch,
    )
    records = with_rates(found.records, search.rates) if search.rates else found.records
    return msgspec.structs.replace(found, study=study, records=records)


def _refuse_all_results(folder: Path) -> None:
    """Refuse the folder of all results: a report is of one study.

    Raises:
        LogParseError: the folder has those of studies and jobs.
    """
    if not folder.is_dir() or is_run(folder) or run_folders(folder):
        return
    names = [home.name for home in homes(folder)]
    if names:
        shown = ", ".join(names[:8]) + (", …" if len(names) > 8 else "")
        raise LogParseError(
            f"{folder}: the folder of all results; name one of them: {shown}",
            f"hpctrain report {folder / names[-1]}",
        )


def _own(found: StudyRuns, stats: ParseStats) -> ReportInputs:
    from hpc_train.scaling.record_arrays import gathered

    own, records = found.runs, gathered(found.packs(stats))
    records, assumed = _with_durations(found.study, own, records)
    network_of = functools.cache(site_network)
    by_id = {run.folder.run_id: run for run in own}
    transports = {name: _transport(run, network_of, stats) for name, run in by_id.items()}
    warnings = _warnings(records, lambda name: link_rate(by_id[name], transports[name]))
    peaks = gpu_peaks(own)
    conditions = {
        name: {**peaks.get(name, {}), **conditions_of(run, transports[name])}
        for name, run in by_id.items()
    }
    warmup, short = _warmup_of_short_runs(found.study, records)
    study = msgspec.structs.replace(_with_conditions(found.study, conditions), warmup=warmup)
    inputs = _report_inputs(study, records, transports, warnings, stats)
    said = "; ".join(filter(None, (inputs.study.guessed, assumed, short)))
    study = msgspec.structs.replace(inputs.study, guessed=said)
    return msgspec.structs.replace(inputs, own=own, study=study)


# A training that states none of the first but one of the second is compared by its duration.
_TIMED = frozenset({*RESULTS, "iteration_time", "busbw", "algbw", "latency", "solve_time"})
_OF_TRAINING = frozenset({"loss", "accuracy", "steps"})
_BY_DURATION = (
    "no line states a time or a rate, so the time to train is the duration of the whole job, "
    "start-up and evaluation included"
)


def _warmup_of_short_runs(study: ExpectedStudy, records: RecordArrays) -> tuple[Warmup, str]:
    """Return half the steps as the warm-up where the usual one leaves none, and that assumption."""
    from hpc_train.scaling.record_arrays import most_steps

    usual, most = Warmup(), most_steps(records, _TIMED)
    if study.warmup != usual or not 0 < most <= usual.steps:
        return study.warmup, ""
    half = Warmup(steps=most // 2)
    return half, f"no run has more than {most} steps, so the warm-up is {half.steps} steps of each"


def _with_durations(
    study: ExpectedStudy, own: Sequence[Run], records: RecordArrays
) -> tuple[RecordArrays, str]:
    """Add the duration of each job of a study as its time to train, if no line may state a time.

    The second value is the assumption; empty if nothing was added.
    """
    from hpc_train.scaling.record_arrays import joined_arrays, metrics_of, record_arrays

    known = metrics_of(records)
    done = [run for run in study.runs if run.state == JobState.COMPLETED.value and run.wall_s]
    trains = all(known.get(run.run_id, set()) & _OF_TRAINING for run in done)
    if not (done and trains) or any(own & _TIMED for own in known.values()):
        return records, ""
    logs = next(log_files([run.folder.logs]) for run in own if run.folder.run_id == done[0].run_id)
    offered = suggested_for(logs)
    if offered is not None and any(one.metric in _TIMED for one in offered[1]):
        return records, ""
    durations = [
        Record(
            run=run.run_id, source="status.json", line=1, parser="duration", metric="time_to_train",
            value=run.wall_s or 0.0, unit="s", scope="global",
        )
        for run in done
    ]  # fmt: skip
    return joined_arrays((records, record_arrays(durations))), _BY_DURATION


def _transport(run: Run, network_of: NetworkOf, stats: ParseStats) -> Transport | None:
    """Return the transport of a run; a damaged stored file is recorded and gives None."""
    try:
        return run_transport(run, network_of)
    except LogParseError as failure:
        _log.warning("%s", failure.message)
        stats.failed[failure.message] = failure.message
        return None


def _foreign(paths: Sequence[Path], search: Search, stats: ParseStats) -> ReportInputs:
    found = load_foreign(paths, search, stats)
    conditions = {
        run: conditions_of(None, transport) for run, transport in found.transports.items()
    }
    study = _with_conditions(without(found.study, search.excluded, None), conditions)
    refuse_same_logs(study, found.files)
    warnings = _warnings(found.records, lambda name: link_rate(None, found.transports.get(name)))
    inputs = _report_inputs(study, found.records, found.transports, warnings, stats)
    return msgspec.structs.replace(inputs, files=found.inputs)


def _with_conditions(
    study: ExpectedStudy, recorded: Mapping[str, Mapping[str, str]]
) -> ExpectedStudy:
    """Add the recorded conditions of each run to the stated ones, which take precedence."""
    if not recorded:
        return study
    runs = tuple(
        msgspec.structs.replace(run, conditions={**recorded.get(run.run_id, {}), **run.conditions})
        for run in study.runs
    )
    return msgspec.structs.replace(study, runs=runs)


def _warnings(records: RecordArrays, rate: LinkRate) -> tuple[str, ...]:
    from hpc_train.scaling.record_arrays import run_level_records

    run_level = run_level_records(records, ("world_size",))
    runs: dict[str, list[Record]] = defaultdict(list)
    for record in run_level:
        if record.parser == "perftest" and (record.message_size or 0) >= _LONG:
            runs[record.run].append(record)
    return (
        *apart_warnings(run_level),
        *(text for run, found in runs.items() for text in _slow(run, found, rate)),
    )


def _report_inputs(
    study: ExpectedStudy,
    records: RecordArrays,
    transports: Mapping[str, Transport | None],
    warnings: Sequence[str],
    stats: ParseStats,
) -> ReportInputs:
    warnings = (*transport_notes(transports), *warnings, *stats.refusals())
    known = {run: transport for run, transport in transports.items() if transport is not None}
    runs = tuple(
        msgspec.structs.replace(run, transport=known[run.run_id].verdict)
        if run.run_id in known
        else run
        for run in study.runs
    )
    noted = msgspec.structs.replace(
        study,
        runs=runs,
        notes=(*study.notes, *warnings),
        guessed=guessed_values(records, stats),
    )
    return ReportInputs(
        study=noted,
        records=records,
        warnings=warnings,
        unreadable=tuple(stats.failed.values()),
        transports=known,
    )


_LONGEST = 60


def guessed_values(records: RecordArrays, stats: ParseStats) -> str:
    """Return which logs the generic parser read, and how it read the first value; empty if none."""
    from hpc_train.scaling.record_arrays import first_of_parser

    found = first_of_parser(records, GUESSING)
    if found is None:
        return ""
    first, runs = found
    more = f" and of {runs - 1} more run{'s' * (runs > 2)}" if runs > 1 else ""
    return (
        f"values of {_name(first)}{more} were read by the generic parser (e.g. line {first.line}: "
        f"{_printed(first, stats)}{first.metric} {first.value:.6g}{_unit(first)}): check them, or "
        "give a pattern (pattern: in the study file, or report --pattern)"
    )


def _name(record: Record) -> str:
    own = record.source.endswith(record.run)
    return record.run if own else f"{record.run}: {record.source}"


def _printed(record: Record, stats: ParseStats) -> str:
    """Return the line of a record, if it was just read."""
    seen = stats.known.get(GUESSING)
    if seen is None or (seen.source, seen.line) != (record.source, record.line):
        return ""
    text = " ".join(seen.text.split())
    return f"`{text[:_LONGEST]}{'…' * (len(text) > _LONGEST)}` as "


def _unit(record: Record) -> str:
    return "" if record.unit == "1" else f" {record.unit}"


# Minimum fraction of its rate that an intact link carries in long messages.
_HEALTHY, _LONG = 0.85, 1 << 16
LinkRate = Callable[[str], float | None]


def link_rate(run: Run | None, transport: Transport | None) -> float | None:
    """Return the speed of an adapter [Gbit/s]: from the site's profile, else from NCCL's log."""
    stated = [
        speed for adapter in (transport.adapters if transport else ()) for speed in adapter.gbps
    ]
    return (_profile_rate(run) if run else None) or max(stated, default=None)


def _slow(run: str, records: list[Record], rate: LinkRate) -> Iterable[str]:
    best, link = headline(records), rate(run)
    share = share_of_link(best.value, link) if best and link else 1.0
    if best and share < _HEALTHY:
        yield (
            f"{run}: perftest moves {best.value * 8:.3g} Gbit/s, {100 * share:.0f} % of the link's "
            f"{link:g}; a healthy link reaches {100 * _HEALTHY:.0f} %: check its speed (`ibstat`), "
            "the PCIe width and speed of the adapter (`lspci -vv`), the MTU and the NUMA node"
        )


def _profile_rate(run: Run) -> float | None:
    if run.manifest is None:
        return None
    try:
        site = load_site(run.manifest.plan.site)
    except HpcTrainError:
        return None
    found = partition_named(site.value, run.manifest.spec.partition)
    return found[1].nic_gbps if found else None


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
        if search.points is not None or search.sizes:
            given = search.points or f"--{next(iter(search.sizes))}"
            raise LogParseError(f"{given}: a table has the sizes of its runs in columns")
        tables = [_table(path, search.sheet) for path in paths]
        # Numpy and pandas are imported here, so that errors above are reported at once.
        from hpc_train.foreign.runs_from_table import table_study
        from hpc_train.scaling.record_arrays import record_arrays

        study, records = table_study(tables)
        files = tuple(dict.fromkeys(sheet_of(path)[0] for path in paths))
        return ForeignResults(study, record_arrays(records), {}, {}, files)
    points_path = paths[0] if kind == "points" else search.points
    if points_path is not None and search.sizes:
        option = next(iter(search.sizes))
        raise LogParseError(f"--{option} and {points_path} both state sizes", "give one of them")
    points = read_points(points_path) if points_path is not None else None
    if kind == "records":
        results = _of_records(paths)
    else:
        logs = logs_named(points) if kind == "points" and points else paths
        options = wanted(search.form, search.prefix, search.patterns)
        results = _of_logs(logs, options, stats, allow_failed=search.allow_failed)
    if search.sizes:
        return results._replace(study=_in_order(results, search.sizes))
    if points is None or points_path is None:
        return results
    return _sized(results, points)._replace(inputs=(points_path, *results.inputs))


def _in_order(results: ForeignResults, sizes: Mapping[str, tuple[int, ...]]) -> ExpectedStudy:
    from hpc_train.scaling.record_arrays import run_level_records

    return in_order(results.study, run_level_records(results.records), sizes)


def _table(path: Path, sheet: str) -> ResultTable:
    if path.suffix != ".parquet":
        return read_table(path, sheet)
    from hpc_train.foreign.parquet import read_texts

    names, rows = read_texts(path)
    return table_of(path, 1, names, enumerate(rows, start=2))


def _sized(results: ForeignResults, points: Points) -> ForeignResults:
    from hpc_train.scaling.record_arrays import joined_arrays, record_arrays, run_level_records

    files = {run.run_id: results.files.get(run.run_id, []) for run in results.study.runs}
    study, more = sized(results.study, run_level_records(results.records), points, files)
    return results._replace(
        study=study, records=joined_arrays((results.records, record_arrays(more)))
    )


def _of_logs(
    paths: Sequence[Path], options: Wanted, stats: ParseStats, *, allow_failed: bool
) -> ForeignResults:
    # Tables and records need no diagnosis, and its signatures are slow to load.
    from hpc_train.diagnosis.diagnose import log_ends
    from hpc_train.scaling.record_arrays import gathered, highest_ranks, metrics_of, of_last_job

    runs = foreign_runs(paths)
    logs = list(chain.from_iterable(runs.values()))
    records = gathered(packs_in(logs, options, stats))
    ends = log_ends(runs, stats.failed)
    transports = {run: end.transport for run, end in ends.items()}
    starts = {source: lines for end in ends.values() for source, lines in end.starts.items()}
    records, begun = of_last_job(records, starts)
    if not len(records.value) and not any(transports.values()):
        raise nothing(logs, stats)
    named = highest_ranks(records)
    ranks = {run: 1 + max(named.get(run, -1), *map(_rank, files)) for run, files in runs.items()}
    study = _study("logs", ranks, metrics_of(records))
    failures = {run: end.failure for run, end in ends.items() if end.failure}
    study = _failed(study, failures, allow_failed=allow_failed)
    notes = (*study.notes, *mlperf_notes(log.path for log in logs))
    files = {run: [log.path for log in own] for run, own in runs.items()}
    assumed = f"reading the last job of each log (from {', '.join(begun)})" if begun else ""
    study = msgspec.structs.replace(study, notes=notes, assumed=assumed)
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
    from hpc_train.scaling.record_arrays import joined_arrays, metrics_of

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
    from hpc_train.scaling.record_arrays import record_arrays

    if path.suffix != ".parquet":
        return record_arrays(read_record_file(path))
    from hpc_train.foreign.parquet import read_records

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
