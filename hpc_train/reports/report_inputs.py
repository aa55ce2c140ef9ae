"""Run folders and foreign results -> the runs of a report, and their records."""

from __future__ import annotations

import functools
import logging
import shlex
from collections.abc import Iterable, Mapping, Sequence, Set as AbstractSet
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import msgspec

from hpc_train.base.decode import decode
from hpc_train.base.errors import HpcTrainError, LogParseError, ReportError, SpecError, nearest
from hpc_train.base.values import Value
from hpc_train.base.yamlfile import read
from hpc_train.foreign.classify_inputs import (
    Points,
    classify,
    in_order,
    logs_named,
    one_kind,
    read_points,
    refuse_same_logs,
    sized,
)
from hpc_train.jobs.log_selection import Search
from hpc_train.jobs.operations import PEAK
from hpc_train.jobs.study import Warmup
from hpc_train.logs.collect import apart_warnings, foreign_runs, nothing, packs_in, wanted
from hpc_train.logs.log_file import log_files, rank_of
from hpc_train.logs.read_log import GUESSING, ParseStats
from hpc_train.logs.record import RESULTS, Record, read_record_file
from hpc_train.nccl.transport import run_transport, site_network, transport_notes
from hpc_train.reports.collect import study_runs
from hpc_train.runs.conditions import Transport, conditions_of
from hpc_train.runs.expected_runs import EXCLUDED, ExpectedRun, ExpectedStudy
from hpc_train.runs.run import JobState, Manifest, Run
from hpc_train.runs.run_folders import homes, is_run, run_folders
from hpc_train.scaling.record_arrays import (
    gathered,
    joined_arrays,
    metrics_of,
    of_last_job,
    of_metric,
    record_arrays,
    records_in,
    run_level_records,
    with_rates,
)

if TYPE_CHECKING:
    import pandas as pd

_log = logging.getLogger(__name__)


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
    by its name, and `logs` its foreign logs.
    """

    study: ExpectedStudy
    records: pd.DataFrame
    warnings: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()
    own: tuple[Run, ...] = ()
    transports: Mapping[str, Transport] = MappingProxyType({})
    logs: Mapping[str, Sequence[Path]] = MappingProxyType({})


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
    if homes and (search.points is not None or search.sizes):
        given = search.points or f"--{next(iter(search.sizes))}"
        raise LogParseError(f"{given}: the sizes of hpctrain's runs are known")
    found = _own(paths, homes, search, stats) if homes else _foreign(paths, search, stats)

    sizes = "".join(f" --{name} {','.join(map(str, n))}" for name, n in search.sizes.items())
    batch, scaling = search.batch or found.study.batch, search.scaling or found.study.scaling
    records, assumed = with_rates(found.records, search.rates)
    assumed = ", ".join(filter(None, (found.study.assumed, assumed)))
    declared = [f"rates whose lines do not say of whom are of the {search.rates}, as declared."]
    study = msgspec.structs.replace(
        found.study,
        # The words that a command repeats.
        asked=shlex.join(words[:_REPEATED]) + " …" * (len(words) > _REPEATED) + sizes,
        scaling=scaling or ("strong" if batch else None),
        batch=batch,
        assumed=assumed,
        notes=(*found.study.notes, *declared * bool(search.rates)),
    )
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


def _own(
    paths: Sequence[Path], homes: Sequence[Path], search: Search, stats: ParseStats
) -> ReportInputs:
    """Return the inputs of a study of hpctrain, or of the runs of a job."""

    found = study_runs(paths, homes, wanted(search.form, search.patterns))
    study, own, records = found.study, found.runs, gathered(found.packs(stats))
    records, assumed = _with_durations(study, own, records)
    network_of, peaks_of = functools.cache(site_network), functools.cache(_gpu_peaks)
    transports: dict[str, Transport] = {}
    conditions: dict[str, dict[str, str]] = {}
    for run in own:
        transport = None
        try:
            network = network_of(run.manifest.plan.site) if run.manifest else None
            transport = run_transport(run, network)
        except LogParseError as failure:
            _log.warning("%s", failure.message)
            stats.failed[failure.message] = failure.message
        peak = peaks_of(run.manifest.plan.site, _partition(run.manifest)) if run.manifest else ""
        recorded = conditions_of(run, transport)
        conditions[run.folder.run_id] = {**({PEAK: peak} if peak else {}), **recorded}
        transports |= {run.folder.run_id: transport} if transport else {}
    warmup, short = _warmup_of_short_runs(study, records)
    said = "; ".join(filter(None, (assumed, short)))
    study = msgspec.structs.replace(study, warmup=warmup, guessed=said)
    study = without(study, search.excluded, homes[0])
    inputs = ReportInputs(study=study, records=records, transports=transports, own=own)
    return _checked(inputs, conditions, stats)


def _partition(manifest: Manifest) -> tuple[str, ...]:
    """Return the names that a run may have for its partition."""
    setting = manifest.plan.settings.get("partition")
    names = {manifest.spec.partition, dict(manifest.plan.directives).get("partition")}
    names |= {str(setting.value)} if setting is not None else set()
    return tuple(sorted(filter(None, names)))


def _gpu_peaks(site: str, partition: tuple[str, ...]) -> str:
    """Return `bf16=989.5 fp32=67`, the peak of the GPUs by the profile of the site; else ``."""
    from hpc_train.sites.load import load_site

    try:
        partitions = load_site(site).value.partitions
    except HpcTrainError:
        return ""
    named = [one for one in partitions if one.name in partition]
    chosen = named or [one for one in partitions if one.default]
    peaks = chosen[0].gpu_peak_tflops if chosen else {}
    return " ".join(f"{dtype}={peak:g}" for dtype, peak in sorted(peaks.items()))


def _checked(
    found: ReportInputs, conditions: Mapping[str, Mapping[str, str]], stats: ParseStats
) -> ReportInputs:
    """Return inputs with warnings, whose runs have recorded conditions; stated ones win."""

    study, transports = found.study, found.transports
    warnings = (
        *transport_notes(transports),
        *apart_warnings(run_level_records(found.records, ("world_size",))),
        *stats.refusals(),
    )
    runs = tuple(
        msgspec.structs.replace(
            run,
            conditions={**conditions.get(run.run_id, {}), **run.conditions},
            transport=own.verdict if (own := transports.get(run.run_id)) else run.transport,
        )
        for run in study.runs
    )
    said = study.guessed
    if not said.startswith("if "):
        said = "; ".join(filter(None, (guessed_values(found.records, stats), said)))
    notes = (*study.notes, *warnings)
    study = msgspec.structs.replace(study, runs=runs, notes=notes, guessed=said)
    failed = tuple(stats.failed.values())
    return msgspec.structs.replace(found, study=study, warnings=warnings, unreadable=failed)


# A training that states none of the first but one of the second is compared by its duration.
_TIMED = frozenset({*RESULTS, "iteration_time", "busbw", "algbw", "latency", "solve_time"})
_OF_TRAINING = frozenset({"loss", "accuracy", "steps"})
_BY_DURATION = (
    "no line states a time or a rate, so the time to train is the duration of the whole job, "
    "start-up and evaluation included"
)


def _warmup_of_short_runs(study: ExpectedStudy, records: pd.DataFrame) -> tuple[Warmup, str]:
    """Return half the steps as the warm-up where the usual one leaves none, and that assumption."""

    timed = of_metric(records, *_TIMED).dropna(subset="step")
    steps = timed.groupby("run", observed=True)["step"]
    usual, most = Warmup(), int((steps.max() - steps.min() + 1).max()) if steps.ngroups else 0
    if study.warmup != usual or not 0 < most <= usual.steps:
        return study.warmup, ""
    half = Warmup(steps=most // 2)
    return half, f"no run has more than {most} steps, so the warm-up is {half.steps} steps of each"


def _with_durations(
    study: ExpectedStudy, own: Sequence[Run], records: pd.DataFrame
) -> tuple[pd.DataFrame, str]:
    """Add the duration of each job of a study as its time to train, if no line may state a time.

    The second value is the assumption, or the option that reads such a line; empty if neither.
    """

    known = metrics_of(records)
    done = [run for run in study.runs if run.state == JobState.COMPLETED.value and run.wall_s]
    if not done or any(own & _TIMED for own in known.values()):
        return records, ""
    logs = next(log_files([run.folder.logs]) for run in own if run.folder.run_id == done[0].run_id)
    if offered := _offered(logs):
        return records, offered
    if not all(known.get(run.run_id, set()) & _OF_TRAINING for run in done):
        return records, ""
    durations = [
        Record(
            run=run.run_id, source="status.json", line=1, parser="duration", metric="time_to_train",
            value=run.wall_s or 0.0, unit="s", scope="global",
        )
        for run in done
    ]  # fmt: skip
    return joined_arrays((records, record_arrays(durations))), _BY_DURATION


def _offered(logs: Iterable[Path]) -> str:
    """Return the option that reads a line which may state a time or a rate; empty without one."""
    from hpc_train.logs.pattern_suggestions import suggested_for

    _, offered = suggested_for(logs) or ("", [])
    return next((one.words for one in offered if one.metric in _TIMED), "")


def _foreign(paths: Sequence[Path], search: Search, stats: ParseStats) -> ReportInputs:
    """Return the inputs of logs, records or tables of other programs, with stated sizes.

    Raises:
        LogParseError: paths of several kinds, or a file with an error.
    """
    kind = one_kind(paths, search.form)
    if search.patterns and kind in ("tables", "records"):
        raise LogParseError(f"{paths[0]}: not a log, so --pattern reads no line of it")
    points_path = paths[0] if kind == "points" else search.points
    if points_path is not None and search.sizes:
        option = next(iter(search.sizes))
        raise LogParseError(f"--{option} and {points_path} both state sizes", "give one of them")
    if kind == "tables":
        found = _of_tables(paths, search)
    elif kind == "records":
        found = _of_records(paths)
    points = read_points(points_path) if points_path is not None and kind != "tables" else None
    if kind in ("logs", "points"):
        logs = logs_named(points) if kind == "points" and points else paths
        found = _of_logs(logs, search, stats)
    found = _sized(found, search, points)
    found = msgspec.structs.replace(found, study=without(found.study, search.excluded, None))
    refuse_same_logs(found.study, found.logs)
    if found.logs and not any(own & _TIMED for own in metrics_of(found.records).values()):
        well = [run.run_id for run in found.study.runs if run.state == JobState.COMPLETED.value]
        said = _offered(path for run in well for path in found.logs.get(run, ()))
        found = msgspec.structs.replace(
            found, study=msgspec.structs.replace(found.study, guessed=said or found.study.guessed)
        )
    used = {run: conditions_of(None, transport) for run, transport in found.transports.items()}
    return _checked(found, used, stats)


def _sized(found: ReportInputs, search: Search, points: Points | None) -> ReportInputs:
    """Return the inputs with the sizes that options or a file of sizes state."""
    if not search.sizes and points is None:
        return found

    run_level = run_level_records(found.records)
    if points is None:
        study = in_order(found.study, run_level, search.sizes)
        return msgspec.structs.replace(found, study=study)
    own = {run.run_id: list(found.logs.get(run.run_id, ())) for run in found.study.runs}
    study, more = sized(found.study, run_level, points, own)
    records = joined_arrays((found.records, record_arrays(more)))
    return msgspec.structs.replace(found, study=study, records=records)


_LONGEST = 60


def guessed_values(records: pd.DataFrame, stats: ParseStats) -> str:
    """Return which logs the generic parser read, and how it read the first value; empty if none."""

    own = records[records["parser"] == GUESSING]
    if own.empty:
        return ""
    first, runs = next(records_in(own[:1])), own["run"].nunique()
    more = f" and of {runs - 1} more run{'s' * (runs > 2)}" if runs > 1 else ""
    name = first.run if first.source.endswith(first.run) else f"{first.run}: {first.source}"
    unit = "" if first.unit == "1" else f" {first.unit}"
    seen, printed = stats.known.get(GUESSING), ""
    # Only of a line that was just read is the text known.
    if seen is not None and (seen.source, seen.line) == (first.source, first.line):
        text = " ".join(seen.text.split())
        printed = f"`{text[:_LONGEST]}{'…' * (len(text) > _LONGEST)}` as "
    return (
        f"values of {name}{more} were read by the generic parser (e.g. line {first.line}: "
        f"{printed}{first.metric} {first.value:.6g}{unit}): check them, or "
        "give a pattern (pattern: in the study file, or report --pattern)"
    )


# Metrics of benchmarks, which are not trainings.
_OF_BENCHMARKS = frozenset(
    {"algbw", "busbw", "gflops", "latency", "residual", "solve_time", "world_size", "wrong_values"}
)
# The first interval of a framework includes compilation and the initialisation of NCCL.
_FIRST = Warmup(steps=1)


def _of_tables(paths: Sequence[Path], search: Search) -> ReportInputs:
    if search.points is not None or search.sizes:
        given = search.points or f"--{next(iter(search.sizes))}"
        raise LogParseError(
            f"{given}: a table has the sizes of its runs in columns",
            "add a column gpus, ranks or nodes, and leave the option out",
        )
    from hpc_train.foreign.runs_from_table import table_study
    from hpc_train.foreign.table_file import read_table

    tables = list(map(read_table, paths))

    study, records = table_study(tables)
    return ReportInputs(study=study, records=record_arrays(records))


def _of_logs(paths: Sequence[Path], search: Search, stats: ParseStats) -> ReportInputs:
    # Tables and records need no diagnosis, and its signatures are slow to load.
    from hpc_train.diagnosis.diagnose import log_ends

    runs = foreign_runs(paths)
    logs = list(chain.from_iterable(runs.values()))
    options = wanted(search.form, search.patterns)
    records = gathered(packs_in(logs, options, stats))
    ends = log_ends(runs, stats.failed)
    transports = {run: end.transport for run, end in ends.items() if end.transport}
    starts = {source: lines for end in ends.values() for source, lines in end.starts.items()}
    records, begun = of_last_job(records, starts)
    if not len(records.value) and not transports:
        raise nothing(logs, stats)
    named = records.groupby("run", observed=True)["rank"].max().fillna(-1).astype(int)
    ranks = {
        run: 1
        + max(named.get(run, -1), *(-1 if (n := rank_of(f.path)) is None else n for f in own))
        for run, own in runs.items()
    }
    study = _study("logs", ranks, metrics_of(records))
    failures = {run: end.failure for run, end in ends.items() if end.failure}
    study = _failed(study, failures, allow_failed=search.allow_failed)
    assumed = f"reading the last job of each log (from {', '.join(begun)})" if begun else ""
    return ReportInputs(
        study=msgspec.structs.replace(study, assumed=assumed),
        records=records,
        transports=transports,
        logs={run: [log.path for log in own] for run, own in runs.items()},
    )


def _failed(
    study: ExpectedStudy, failures: Mapping[str, str], *, allow_failed: bool
) -> ExpectedStudy:
    """Return the study with failed logs marked, or noted if they are allowed."""
    counted = [run.run_id for run in study.runs if run.run_id in failures and not run.problem]
    if allow_failed:
        notes = (f"counted, but its log shows a failure: {r}: {failures[r]}" for r in counted)
        return msgspec.structs.replace(study, notes=(*study.notes, *notes))
    runs = tuple(
        msgspec.structs.replace(run, state=JobState.FAILED.value, problem=failures[run.run_id])
        if run.run_id in failures
        else run
        for run in study.runs
    )
    return msgspec.structs.replace(study, runs=runs)


def _of_records(paths: Sequence[Path]) -> ReportInputs:

    parts = []
    for path in paths:
        if path.suffix == ".parquet":
            from hpc_train.foreign.parquet import read_records

            parts.append(record_arrays(read_records(path)))
        else:
            parts.append(record_arrays(read_record_file(path)))
    records = joined_arrays(parts)
    runs = metrics_of(records)
    if not runs:
        raise LogParseError(f"{paths[0]}: no record in it", "hpctrain collect LOG… -o FILE")
    study = _study(paths[0].stem, dict.fromkeys(runs, 0), runs)
    return ReportInputs(study=study, records=records)


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
    return ExpectedStudy(name=name, runs=expected, warmup=_FIRST)


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


_EXCLUSIONS = "exclude.yaml"


def exclusions(words: Sequence[str]) -> dict[str, str]:
    """Return run -> reason from words like `1-srun-r2=node 3 was down`.

    Raises:
        ReportError: a run or a reason is missing.
    """
    found = {}
    for word in words:
        run, _, reason = word.partition("=")
        if not run or not reason.strip():
            raise ReportError(
                f"--exclude {word!r}: a run and a reason are needed",
                "--exclude 'RUN=reason'",
            )
        found[run] = reason.strip()
    return found


def without(study: ExpectedStudy, excluded: Mapping[str, str], home: Path | None) -> ExpectedStudy:
    """Return the study with the excluded runs marked, with their reasons.

    `home` is a study's folder, which may hold `exclude.yaml`: run -> reason.

    Raises:
        ReportError: no such run, or no reason.
    """
    kept = _kept(home / _EXCLUSIONS) if home is not None else {}
    wanted = {**kept, **{run: ("--exclude", reason) for run, reason in excluded.items()}}
    if not wanted:
        return study
    known = [run.run_id for run in study.runs]
    for run in wanted.keys() - set(known):
        raise ReportError(
            f"{wanted[run][0]}: no run is called {run!r}{nearest(run, known)}",
            f"there are: {', '.join(known[:8])}{', …' if len(known) > 8 else ''}",
        )
    runs = tuple(
        msgspec.structs.replace(run, state=EXCLUDED, problem=wanted[run.run_id][1])
        if run.run_id in wanted
        else run
        for run in study.runs
    )
    return msgspec.structs.replace(study, runs=runs)


def _kept(path: Path) -> dict[str, tuple[str, str]]:
    """Return run -> place and reason from a file; empty if there is no file."""
    if not path.is_file():
        return {}
    document = read(path, ReportError)
    reasons = decode(document.data, dict[str, str], document.origins, ReportError).value
    for run, reason in reasons.items():
        if not reason.strip():
            raise ReportError(f"{document.origins[run]}: {run}: a reason is needed", "run: reason")
    return {run: (document.origins[run], reason.strip()) for run, reason in reasons.items()}
