"""Report inputs -> report."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from hpc_train.base.errors import HpcTrainError, ReportError, UnknownNameError
from hpc_train.base.files import is_folder, is_regular, sha256_of
from hpc_train.jobs.log_selection import Search
from hpc_train.jobs.study import Gates, Regression, Warmup
from hpc_train.logs.log_file import log_files, readable
from hpc_train.reports.caveats import MEANING
from hpc_train.reports.compare import side
from hpc_train.reports.formats.csv_table import flat_row, flat_rows
from hpc_train.reports.gates import OF_RUN, REFERENCE, GateInputs, gated
from hpc_train.reports.gates import check_lines as check_lines
from hpc_train.reports.gates import open_checks as open_checks
from hpc_train.reports.gates import unreadable_gates as unreadable_gates
from hpc_train.reports.gates import without_result as without_result
from hpc_train.reports.read_report_options import paper_of as paper_of
from hpc_train.reports.read_report_options import target_of as target_of
from hpc_train.reports.report import CAVEATS, Fact, Report
from hpc_train.reports.report_inputs import ReportInputs, report_inputs
from hpc_train.runs.conditions import run_facts
from hpc_train.runs.expected_runs import CONTRADICTED, ExpectedStudy
from hpc_train.runs.json_files import to_json
from hpc_train.runs.log_result_cache import read_cache, write_cache
from hpc_train.runs.run import JobState, Run
from hpc_train.scaling.report_options import ReportOptions
from hpc_train.scaling.run_flags import IMPLAUSIBLE
from hpc_train.scaling.run_selection import row_frame
from hpc_train.sites.batch_system import find_batch_system
from hpc_train.version import VERSION

if TYPE_CHECKING:
    import pandas as pd

    from hpc_train.scaling.record_arrays import RecordArrays

DEFAULT = ReportOptions()


def build_report(inputs: ReportInputs, options: ReportOptions = DEFAULT) -> Report:
    """Compute the tables of a study and, if requested, its figures.

    Raises:
        ReportError: the runs contradict what the study declares.
    """
    from hpc_train.reports.caveats import with_run_caveats
    from hpc_train.reports.scaling_report import scaling_report
    from hpc_train.reports.table_layout import all_columns
    from hpc_train.reports.tables import with_laws, with_strategies
    from hpc_train.scaling.caveats import apart_points, slow_runs
    from hpc_train.scaling.fastest_series import fastest_frame
    from hpc_train.scaling.scaling_fits import fits
    from hpc_train.scaling.speedup import speedup_frame
    from hpc_train.scaling.step_times import node_frame
    from hpc_train.scaling.strategy_comparison import strategy_rows

    inputs = msgspec.structs.replace(inputs, study=with_site_gates(inputs, options))
    runs, notes = _comparable_runs(inputs)
    study = msgspec.structs.replace(inputs.study, notes=(*inputs.study.notes, *notes))
    if (benchmarks := _of_benchmarks(study, runs, inputs.records, options)) is not None:
        return _with_provenance(benchmarks, inputs, options)
    points = speedup_frame(runs, study)
    laws = fits(points, options.forecast)
    compared = fastest_frame(runs, points, study)
    columns = None if options.wide else options.columns
    report = scaling_report(study, runs, points, compared, columns=columns)
    report = with_strategies(report, study, strategy_rows(runs, inputs.records))
    nodes = node_frame(study, inputs.records)
    report = with_run_caveats(report, apart_points(runs, points), slow_runs(runs), points)
    report = with_laws(report, laws, options.forecast)
    if options.target is not None:
        from hpc_train.reports.tables import with_target
        from hpc_train.scaling.time_to_accuracy_by_point import target_rows

        report = with_target(
            report, target_rows(inputs.records, runs, points, options.target), options.target
        )
    report = _with_gate_results(report, study, (runs, points), inputs, options)
    report = _with_provenance(report, inputs, options)
    report = all_columns(report) if options.wide else report
    if not options.figures or not points["n_ok"].any():
        return report
    from hpc_train.reports.figures import FIGURES, MAIN, figures
    from hpc_train.reports.figures.plot_data import Measured

    names = (MAIN,) if options.main_figure_only else tuple(FIGURES)
    drawn = figures(
        study, Measured(runs, points, laws, nodes), options.images, names, options.paper
    )
    return msgspec.structs.replace(report, figures=drawn)


def _of_benchmarks(
    study: ExpectedStudy, runs: pd.DataFrame, records: RecordArrays, options: ReportOptions
) -> Report | None:
    """Return the report of benchmarks; None if a run is a training, or a gate has to be decided."""
    from hpc_train.reports.bandwidth import bandwidth_report, sizes_of_jobs
    from hpc_train.scaling.largest_message_bandwidth import bandwidth_tables

    benchmarks = (runs["state"] == "UNPARSED") & ~runs["problem"].str.startswith(CONTRADICTED)
    if study.gates != Gates() or (runs["state"] == JobState.COMPLETED.value).any():
        return None
    tables, apart = bandwidth_tables(sizes_of_jobs(runs[benchmarks]), records)
    return bandwidth_report(study, runs, (tables, apart), options) if tables or apart else None


def _with_provenance(report: Report, inputs: ReportInputs, options: ReportOptions) -> Report:
    facts = provenance(inputs, Digests() if options.digests else None)
    unfinished = bool(inputs.study.unfinished)
    report = msgspec.structs.replace(report, partial=unfinished, provenance=facts)
    if not options.details:
        return report
    from hpc_train.reports.run_details import details

    run_details, scripts = details(inputs)
    return msgspec.structs.replace(report, details=run_details, scripts=scripts)


def _comparable_runs(inputs: ReportInputs) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Return the runs in series that may be compared, with their flags, and why series were split.

    Raises:
        ReportError: see `run_frame` and `separated`.
    """
    from hpc_train.scaling.implausible_values import with_implausible
    from hpc_train.scaling.runs import run_frame
    from hpc_train.scaling.split_series import separated

    runs, notes = separated(run_frame(inputs.study, inputs.records), inputs.study)
    return with_implausible(runs), notes


# Values of a single run, by the columns of the run table.
_VALUES = {
    "step_time_s": "s a step",
    "samples_per_second": "samples/s",
    "tokens_per_second": "tokens/s",
    "epoch_time_s": "s an epoch",
    "time_to_train_s": "s to train",
    "loss": "loss",
    "accuracy": "accuracy",
    "memory_gib": "GiB of memory",
}
HEADLINE = 3
_NO_RESULT = "no result: "


def headline(words: Sequence[str], root: Path) -> tuple[str, ...]:
    """Return the answer in at most three lines, or why there is none; of a single run its values.

    How lines were read and what is implausible is said with it; a reason ends with what to type.
    """
    try:
        inputs = report_inputs(words, Search(root=root))
        report = build_report(inputs)
    except HpcTrainError as failure:
        return (f"{_NO_RESULT}{failure.message}",)
    lines = _headline(report)
    if lines[:1] and lines[0].startswith(_NO_RESULT):
        return lines
    starts = tuple(f"{CAVEATS}{MEANING[code]}" for code in IMPLAUSIBLE)
    wrong = next((line for line in report.summary if line.startswith(starts)), "")
    guessed = f"assumed: {inputs.study.guessed}" if inputs.study.guessed else ""
    beside = [*filter(None, (wrong.removeprefix(CAVEATS), guessed))]
    return (*lines[: HEADLINE - len(beside)], *beside)


def _headline(report: Report) -> tuple[str, ...]:
    rows = report.run_rows
    answer = report.answer[:HEADLINE]
    if not any(row["state"] == JobState.COMPLETED.value for row in rows):
        why = next((str(row["problem"]) for row in rows if row["problem"]), "")
        return (f"{_NO_RESULT}{why}",) if why else answer
    if len(rows) > 1:
        return answer
    known = {words: rows[0].get(key) for key, words in _VALUES.items()}
    values = [
        f"{words} {value:.4g}" if words in _VALUES else f"{value:.4g} {words}"
        for words, value in known.items()
        if value is not None
    ]
    return (f"measured: {', '.join(values)}",) if values else answer


# CSC, "How to access the Mahti large partition": docs.csc.fi/accounts/.
RULES = {"csc": Gates(node_counts=3, efficiency=0.75, doubling=1.5, script=True)}
RULE_WORDS = {
    "csc": "Rule csc: for access to Mahti's large partition CSC Finland requires results at 3 node "
    "counts or more, an efficiency of 75 %, 1.5 times the speed on twice the nodes, and the job "
    "script."
}
SITE_UNKNOWN = "The gates and the network of the site are not known: {why}."


def with_site_gates(inputs: ReportInputs, options: ReportOptions) -> ExpectedStudy:
    """Return the study with options, and the gates of its site.

    The command line takes precedence over the study, and the study over the site.
    """
    of_site, unknown = site_gates(inputs.own)
    study = msgspec.structs.replace(
        inputs.study,
        site_unknown=inputs.study.site_unknown or unknown,
        allow_mixed=options.allow_mixed or inputs.study.allow_mixed,
    )
    gates = merged_gates(study.gates, of_site)
    if options.against is not None:
        tolerance = gates.regression.tolerance if gates.regression else 0.05
        regression = Regression(against=options.against, tolerance=tolerance)
        gates = msgspec.structs.replace(gates, regression=regression)
    return msgspec.structs.replace(study, gates=gates)


def site_gates(own: Sequence[Run]) -> tuple[Gates, str]:
    """Return the gates of the runs' sites, if they are equal, and else why they are not known.

    A profile may have been removed since: this is not an error here, but it must differ from a site
    without gates.
    """
    # Foreign logs need no profiles.
    from hpc_train.sites.load import load_site

    places = sorted(
        {
            (run.manifest.plan.site, str(run.manifest.provenance.get("profile", "")))
            for run in own
            if run.manifest
        }
    )
    if own and not places:
        return Gates(), f"run.json of {own[0].folder.run_id} cannot be read"
    found = []
    for name, file in places:
        try:
            found.append(load_site(file if is_regular(Path(file)) else name).value.report.gates)
        except UnknownNameError:
            return Gates(), f"there is no profile {name} on the search path"
        except HpcTrainError as failure:
            return Gates(), f"{name}: {failure.message}"
    if any(gates != found[0] for gates in found):
        names = ", ".join(f"{name} ({file})" for name, file in places)
        return Gates(), f"the runs are from several sites with different gates: {names}"
    return found[0] if found else Gates(), ""


def merged_gates(*layers: Gates) -> Gates:
    """Return the gates of several layers, in order of precedence; a rule follows its layer."""
    values: dict[str, Any] = {}
    for layer in layers:
        for gates in (layer, RULES[layer.rule] if layer.rule else Gates()):
            stated = msgspec.structs.asdict(gates).items()
            values = {**{name: v for name, v in stated if v is not None}, **values}
    return Gates(**values)


def _with_gate_results(
    report: Report,
    study: ExpectedStudy,
    tables: Sequence[pd.DataFrame],
    inputs: ReportInputs,
    options: ReportOptions,
) -> Report:
    """Return the report with a verdict on each gate; `tables` are its runs and its points.

    Raises:
        ReportError: the reference of the regression gate on the command line cannot be read.
    """
    from hpc_train.reports.value_format import plain_rows
    from hpc_train.scaling.largest_message_bandwidth import largest_busbw

    runs, points = tables
    notes = [RULE_WORDS[study.gates.rule]] if study.gates.rule else []
    if study.site_unknown:
        notes.append(SITE_UNKNOWN.format(why=study.site_unknown))
    changes, implausible, unknown = _changes(runs, study, options)
    known = GateInputs(
        scripts=(len(inputs.own), sum(is_regular(run.folder.script) for run in inputs.own)),
        busbw=largest_busbw(inputs.records) if study.gates.busbw else {},
        runs=tuple(plain_rows(runs[[name for name in OF_RUN if name in runs]])),
        site_unknown=study.site_unknown,
        changes=changes,
        implausible=implausible,
        reference_unknown=unknown,
    )
    report = msgspec.structs.replace(report, notes=(*report.notes, *notes))
    return gated(report, study.gates, plain_rows(points), known)


def _changes(
    runs: pd.DataFrame, study: ExpectedStudy, options: ReportOptions
) -> tuple[tuple[dict[str, Any], ...], tuple[str, ...], str]:
    """Compare with the regression gate's reference, name its implausible values, or say why not.

    Raises:
        ReportError: it was named on the command line, and does not exist.
    """
    from hpc_train.reports.caveats import implausible_of_side
    from hpc_train.reports.value_format import plain_rows
    from hpc_train.scaling.comparison import Demands, comparison_frame

    if study.gates.regression is None or options.search is None:
        return (), (), ""
    try:
        old = side(study.gates.regression.against, options.search, study.allow_mixed)
    except HpcTrainError as failure:
        if options.against is not None:
            raise ReportError(f"{REFERENCE}: {failure.message}", failure.hint) from None
        return (), (), failure.message
    demands = Demands(allow_mixed=study.allow_mixed)
    changes = plain_rows(comparison_frame(old.runs, runs, demands))
    return tuple(changes), tuple(implausible_of_side(old.points)), ""


# Facts that a reviewer may request (Hoefler and Belli, SC15, rule 9; CloudAI's list): shown as not
# recorded if no run has them.
WANTED = (
    "jobs", "partition", "qos", "account", "nodes", "gpu", "driver", "power cap", "cuda", "torch",
    "nccl", "plugin", "adapters", "mpi", "slurm", "container", "modules", "commit", "model", "data",
    "seed", "precision", "layout", "profile", "template", "script",
)  # fmt: skip
# Other names of the same fact.
_ALSO = {"gpu": ("gpu_type",), "cuda": ("rocm",), "nccl": ("rccl",), "torch": ("torch_asked",)}
_MOST = 20
NOT_RECORDED = "not recorded"


def provenance(inputs: ReportInputs, digests: Digests | None = None) -> tuple[Fact, ...]:
    """Return the facts about the runs, each value with the number of runs that have it.

    With `digests`, those of the logs are included. Secrets are not recorded.
    """
    by_name: dict[str, Counter[str]] = defaultdict(Counter)
    for of_run, count in _facts_of_runs(inputs):
        for name, value in of_run.items():
            by_name[name][value] += count
    facts = [
        *_times(inputs.own),
        *(Fact(name=name, values=_counted(values)) for name, values in by_name.items()),
        *_analysis(inputs),
        *_sources(inputs, digests),
    ]
    known = {fact.name for fact in facts}
    missing = [n for n in WANTED if not known.intersection((n, *_ALSO.get(n, ())))]
    if missing and by_name:
        facts.append(
            Fact(name=NOT_RECORDED, values=((", ".join(missing), len(inputs.study.runs)),))
        )
    return tuple(facts)


def _facts_of_runs(inputs: ReportInputs) -> Iterator[tuple[Mapping[str, str], int]]:
    """Yield the recorded facts of runs; those that the job printed take precedence.

    The number of runs follows: nothing but its conditions is recorded of a run in a table.
    """
    from hpc_train.scaling.record_arrays import run_level_records

    own = {run.folder.run_id: run for run in inputs.own}
    printed: dict[str, dict[str, str]] = defaultdict(dict)
    for record in run_level_records(inputs.records, ("condition", "seed")):
        if record.metric == "condition":
            name, _, value = record.variant.partition("=")
            printed[record.run].setdefault(name, value)
        elif record.metric == "seed":
            printed[record.run].setdefault("seed", f"{record.value:g}")
    if not (own or inputs.transports or printed):
        yield from ((_shown(run.conditions), 1) for run in inputs.study.runs)
        return
    for expected in inputs.study.runs:
        name = expected.run_id
        run, transport = own.get(name), inputs.transports.get(name)
        conditions = _shown({**expected.conditions, **printed.get(name, {})})
        yield {**run_facts(run, transport), **conditions}, 1


def _shown(conditions: Mapping[str, str]) -> dict[str, str]:
    """Return the conditions that are facts; each variable is a separate fact."""
    return {name: value for name, value in conditions.items() if name != "variables"}


def _counted(values: Counter[str]) -> tuple[tuple[str, int], ...]:
    """Return the values, the most frequent first; if there are many, the number of the rest."""
    ranked = sorted(values.items(), key=lambda item: (-item[1], item[0]))
    if len(ranked) <= _MOST:
        return tuple(ranked)
    rest = ranked[_MOST:]
    return (*ranked[:_MOST], (f"{len(rest)} other values", sum(count for _, count in rest)))


def _times(runs: Sequence[Run]) -> Iterator[Fact]:
    statuses = [run.status for run in runs if run.status]
    moments: dict[str, list[float | None]] = {
        "submitted": [_moment(run.submission.submitted) for run in runs if run.submission],
        "started": [status.started for status in statuses],
        "ended": [status.ended for status in statuses],
    }
    jobs = [job for run in runs if (job := _job(run))]
    if jobs:
        yield Fact(name="jobs", values=((_span(sorted(set(jobs), key=_order)), len(jobs)),))
    for name, values in moments.items():
        known = sorted(moment for moment in values if moment is not None)
        if known:
            ends = (datetime.fromtimestamp(one, timezone.utc) for one in (known[0], known[-1]))
            days = list(dict.fromkeys(f"{one:%Y-%m-%d %H:%M:%S} UTC" for one in ends))
            yield Fact(name=name, values=((" … ".join(days), len(known)),))


def _job(run: Run) -> str:
    """Return the scheduler's id of a run; a process id has no meaning later."""
    if run.submission is None or find_batch_system(run.submission.executor).this_machine:
        return ""
    return (run.status.job if run.status else "") or run.submission.native_id


def _order(job: str) -> tuple[int, str]:
    number = job.partition("_")[0]
    return (int(number) if number.isdecimal() else 0, job)


def _span(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{words[0]} … {words[-1]} ({len(words)} jobs)"


def _moment(text: str) -> float | None:
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return None


def _analysis(inputs: ReportInputs) -> Iterator[Fact]:
    from hpc_train.scaling.record_arrays import has_step_times

    study, count = inputs.study, len(inputs.study.runs)
    if has_step_times(inputs.records):
        yield Fact(name="warm-up excluded", values=((_warmup(study.warmup), count),))
        yield Fact(name="value of a run", values=(("median step time of the slowest rank", count),))
    yield Fact(name="interval", values=(("95 %, Welch on logarithms, over runs", count),))
    yield Fact(name="analysed by", values=((f"hpctrain {VERSION}", count),))
    if study.allow_mixed:
        yield Fact(name="allowed to differ", values=((", ".join(study.allow_mixed), count),))


def _warmup(warmup: Warmup) -> str:
    seconds = f", and {warmup.seconds:g} s" if warmup.seconds else ""
    return f"{warmup.steps} steps{seconds}"


def _sources(inputs: ReportInputs, digests: Digests | None) -> Iterator[Fact]:
    from hpc_train.scaling.record_arrays import parsers_of

    parsers = parsers_of(inputs.records)
    if parsers:
        ranked = [f"{name} {count}" for name, count in _counted(parsers)]
        yield Fact(name="records by parser", values=((", ".join(ranked), len(inputs.study.runs)),))
    if digests is None:
        return
    logs = [line for run in inputs.own if (line := digests.of_run(run))]
    logs += digests.of_files(_named(inputs.files))
    if logs:
        count = len(inputs.study.runs) if len(logs) == 1 else 1
        yield Fact(name="logs", values=tuple((line, count) for line in logs))


def _named(files: Sequence[Path]) -> Sequence[tuple[str, Path]]:
    names = Counter(path.name for path in files)
    return [(path.name if names[path.name] == 1 else path.as_posix(), path) for path in files]


# Stored in the run folder, in case the logs are deleted.
_FILE = "logs.json"
_MOST_DIGESTED = 1 << 30
_decode = msgspec.json.Decoder(str).decode


class Digests:
    """Digests of files, up to a GiB in total: after that, sizes only."""

    def __init__(self, most: int = _MOST_DIGESTED) -> None:
        self._left = most

    def of_run(self, run: Run) -> str:
        """Return a line for all logs of a run or, if they are deleted, the stored line.

        The line of a finished run is stored in logs.json. The digest is that of the output of
        `sha256sum` for all logs, called in the run's folder and sorted by name.

        Raises:
            LogParseError: the stored file is damaged.
        """
        folder = run.folder
        if not is_folder(folder.logs):
            return read_cache(folder.path / _FILE, _decode) or ""
        files = log_files([folder.logs])
        size = sum(path.stat().st_size for path in files)
        lines = [f"{self._of(p)}  {p.relative_to(folder.path).as_posix()}\n" for p in files]
        complete = not any(line.startswith("-") for line in lines)
        digest = hashlib.sha256("".join(map(readable, lines)).encode()).hexdigest()
        count = f"{len(files)} file{'s' * (len(files) != 1)}"
        line = f"{folder.run_id}: {count}, {size} B{_shown_digest(digest if complete else '')}"
        if run.state.finished:
            write_cache(folder.path / _FILE, to_json(line))
        return line

    def of_files(self, files: Iterable[tuple[str, Path]]) -> Iterator[str]:
        """Yield a line for each file: its name, size, and digest."""
        for name, path in files:
            if path.is_file():
                size, digest = path.stat().st_size, self._of(path).removeprefix("-")
                yield f"{readable(name)}: {size} B{_shown_digest(digest)}"

    def _of(self, path: Path) -> str:
        """Return a file's digest; `-` if there are too many bytes, or they cannot be read."""
        try:
            self._left -= path.stat().st_size
            return "-" if self._left < 0 else sha256_of(path)
        except OSError:
            return "-"


def _shown_digest(digest: str) -> str:
    return f", sha256 {digest}" if digest else ", not digested"


def points_frame(report: Report) -> pd.DataFrame:
    """Return the columns of `hpctrain report -f csv`, with all digits."""
    return row_frame(flat_rows(report.tables[0]) if report.tables else [])


def runs_frame(report: Report) -> pd.DataFrame:
    """Return one row per requested run, also of failed and missing ones."""
    return row_frame([flat_row(row) for row in report.run_rows])
