"""Report inputs -> report."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from hpc_train import __version__
from hpc_train.base.errors import HpcTrainError, LogParseError, ReportError
from hpc_train.base.files import is_folder, is_regular
from hpc_train.jobs.log_selection import Search
from hpc_train.jobs.study import Gates, Regression
from hpc_train.reports.gates import (
    OF_RUN,
    REFERENCE,
    against_reference,
    gated,
    scripts_there,
    unreadable,
    verdicts,
)
from hpc_train.reports.report import (
    CAVEATS,
    MEANING,
    Fact,
    GateResult,
    Report,
    ReportOptions,
    implausible_of_side,
    plain_rows,
    run_caveats,
)
from hpc_train.reports.report_inputs import ReportInputs, report_inputs
from hpc_train.reports.scaling_report import scaling_report
from hpc_train.reports.tables import with_laws, with_strategies, with_target
from hpc_train.reports.text import all_columns
from hpc_train.runs.conditions import run_facts
from hpc_train.runs.expected_runs import CONTRADICTED, ExpectedStudy
from hpc_train.runs.run import JobState, Run
from hpc_train.scaling.caveats import apart_points, slow_runs, with_implausible
from hpc_train.scaling.measurements import IMPLAUSIBLE
from hpc_train.scaling.runs import run_frame
from hpc_train.scaling.scaling_fits import fits
from hpc_train.scaling.speedup import speedup_frame
from hpc_train.scaling.split_series import separated
from hpc_train.sites.batch_system import find_batch_system

if TYPE_CHECKING:
    import pandas as pd

    from hpc_train.diagnosis.diagnosis import Diagnosis


DEFAULT = ReportOptions()


def build_report(inputs: ReportInputs, options: ReportOptions = DEFAULT) -> Report:
    """Compute the tables of a study and, if requested, its figures.

    Raises:
        ReportError: the runs contradict what the study declares.
    """
    study, records = _with_options(inputs.study, options), inputs.records
    runs, notes = separated(run_frame(study, records), study)
    runs = with_implausible(runs)
    study = msgspec.structs.replace(study, notes=(*study.notes, *notes))
    inputs = msgspec.structs.replace(inputs, study=study)
    if (benchmarks := _of_benchmarks(study, runs, records, options)) is not None:
        return _with_provenance(benchmarks, inputs, options)
    points = speedup_frame(runs, study)
    laws = fits(points)
    compared, trained = None, list[dict[str, Any]]()
    if len({*runs["series"]}) > 1:
        from hpc_train.scaling.comparison import fastest_frame, strategy_rows

        compared, trained = fastest_frame(runs, points, study), strategy_rows(runs, records)
    report = scaling_report(study, runs, points, compared, wide=options.wide)
    report = with_strategies(report, study, trained)
    caveats = run_caveats(apart_points(runs, points), slow_runs(runs), points)
    report = msgspec.structs.replace(report, summary=(*report.summary, *caveats))
    report = with_laws(report, laws)
    if options.target is not None:
        from hpc_train.scaling.time_to_accuracy_by_point import target_rows

        rows = target_rows(records, runs, points, options.target)
        report = with_target(report, rows, options.target)
    report = _with_gate_results(report, inputs, options, (runs, points))
    report = _with_provenance(report, inputs, options)
    report = all_columns(report) if options.wide else report
    if not options.figures or not points["n_ok"].any():
        return report
    from hpc_train.reports.figures import FIGURES, MAIN, figures
    from hpc_train.reports.figures.canvas import Measured
    from hpc_train.scaling.measurements import node_frame

    names = (MAIN,) if options.main_figure_only else tuple(FIGURES)
    measured = Measured(runs, points, laws, node_frame(study, records))
    drawn = figures(study, measured, options.images, names, options.paper)
    return msgspec.structs.replace(report, figures=drawn)


def _of_benchmarks(
    study: ExpectedStudy, runs: pd.DataFrame, records: pd.DataFrame, options: ReportOptions
) -> Report | None:
    """Return the report of benchmarks; None if a run is a training, or a gate has to be decided."""
    benchmarks = (runs["state"] == "UNPARSED") & ~runs["problem"].str.startswith(CONTRADICTED)
    if study.gates != Gates() or (runs["state"] == JobState.COMPLETED.value).any():
        return None
    from hpc_train.reports.bandwidth import bandwidth_report, bandwidth_tables, sizes_of_jobs

    tables, apart = bandwidth_tables(sizes_of_jobs(runs[benchmarks]), records)
    return bandwidth_report(study, runs, (tables, apart), options) if tables or apart else None


def _with_provenance(report: Report, inputs: ReportInputs, options: ReportOptions) -> Report:
    unfinished = bool(inputs.study.unfinished)
    facts = provenance(inputs)
    report = msgspec.structs.replace(report, partial=unfinished, provenance=facts)
    if not options.details:
        return report
    return msgspec.structs.replace(report, diagnoses=diagnoses(inputs))


# Values of a single run, by the columns of the run table.
_VALUES = {
    "step_time_s": "{:.4g} s a step",
    "samples_per_second": "{:.4g} samples/s",
    "tokens_per_second": "{:.4g} tokens/s",
    "epoch_time_s": "{:.4g} s an epoch",
    "time_to_train_s": "{:.4g} s to train",
    "loss": "loss {:.4g}",
    "accuracy": "accuracy {:.4g}",
    "memory_gib": "{:.4g} GiB of memory",
}
HEADLINE = 3


def headline(words: Sequence[str], root: Path) -> tuple[str, ...]:
    """Return the answer in at most three lines, or why there is none; of a single run its values.

    How lines were read and what is implausible is said with it; a reason ends with what to type.
    """
    try:
        inputs = report_inputs(words, Search(root=root))
        report = build_report(inputs)
    except HpcTrainError as failure:
        return (f"no result: {failure.message}",)
    rows, lines = report.run_rows, report.answer
    if not any(row["state"] == JobState.COMPLETED.value for row in rows):
        why = next((str(row["problem"]) for row in rows if row["problem"]), "")
        if why:
            _, is_option, pattern = inputs.study.guessed.rpartition(": --pattern ")
            command = f"next: hpctrain report {inputs.study.asked} --pattern {pattern}"
            return (f"no result: {why}", *[command] * bool(is_option))
    elif len(rows) == 1:
        known = ((form, rows[0].get(key)) for key, form in _VALUES.items())
        values = [form.format(value) for form, value in known if value is not None]
        lines = (f"measured: {', '.join(values)}",) if values else lines
    starts = tuple(f"{CAVEATS}{MEANING[code]}" for code in IMPLAUSIBLE)
    wrong = next((line for line in report.summary if line.startswith(starts)), "")
    guessed = f"assumed: {inputs.study.guessed}" if inputs.study.guessed else ""
    beside = [*filter(None, (wrong.removeprefix(CAVEATS), guessed))]
    return (*lines[: HEADLINE - len(beside)], *beside)


# CSC, "How to access the Mahti large partition": docs.csc.fi/accounts/.
RULES = {"csc": Gates(node_counts=3, efficiency=0.75, doubling=1.5, script=True)}
RULE_WORDS = {
    "csc": "Rule csc: for access to Mahti's large partition CSC Finland requires results at 3 node "
    "counts or more, an efficiency of 75 %, 1.5 times the speed on twice the nodes, and the job "
    "script."
}


def _with_options(study: ExpectedStudy, options: ReportOptions) -> ExpectedStudy:
    """Return the study with the options, which take precedence over it, and its rule applied."""
    gates = study.gates
    if gates.rule:
        stated = msgspec.structs.asdict(gates).items()
        gates = msgspec.structs.replace(
            RULES[gates.rule], **{name: value for name, value in stated if value is not None}
        )
    if options.against is not None:
        tolerance = gates.regression.tolerance if gates.regression else 0.05
        regression = Regression(against=options.against, tolerance=tolerance)
        gates = msgspec.structs.replace(gates, regression=regression)
    allowed = options.allow_mixed or study.allow_mixed
    return msgspec.structs.replace(study, gates=gates, allow_mixed=allowed)


def _with_gate_results(
    report: Report, inputs: ReportInputs, options: ReportOptions, tables: Sequence[pd.DataFrame]
) -> Report:
    """Return the report with a verdict on each gate; `tables` are its runs and its points.

    Raises:
        ReportError: the reference of the regression gate on the command line cannot be read.
    """
    (runs, points), study = tables, inputs.study
    gates, notes = study.gates, [RULE_WORDS[study.gates.rule]] if study.gates.rule else []
    others: list[GateResult] = []
    if gates.script:
        there = sum(is_regular(run.folder.script) for run in inputs.own)
        others.append(scripts_there(len(inputs.own), there))
    if gates.regression is not None and options.search is not None:
        from hpc_train.reports.compare import side
        from hpc_train.scaling.comparison import comparison_frame

        try:
            old = side(gates.regression.against, options.search, study.allow_mixed)
            changes = plain_rows(comparison_frame(old.runs, runs, allow_mixed=study.allow_mixed))
            wrong = implausible_of_side(old.points)
            others += against_reference(gates.regression, changes, wrong)
        except HpcTrainError as failure:
            if options.against is not None:
                raise ReportError(f"{REFERENCE}: {failure.message}", failure.hint) from None
            others.append(unreadable(failure.message))
    busbw: Mapping[str, float] = {}
    if gates.busbw:
        from hpc_train.reports.bandwidth import largest_busbw

        busbw = largest_busbw(inputs.records)
    found = verdicts(
        gates,
        plain_rows(points),
        plain_rows(runs[[name for name in OF_RUN if name in runs]]),
        others,
        busbw,
    )
    report = msgspec.structs.replace(report, notes=(*report.notes, *notes))
    return gated(report, found, others)


# Facts that a reviewer may request (Hoefler and Belli, SC15, rule 9; CloudAI's list): shown as not
# recorded if no run has them.
WANTED = (
    "jobs", "partition", "qos", "account", "nodes", "gpu", "driver", "power cap", "cuda", "torch",
    "nccl", "plugin", "adapters", "mpi", "slurm", "container", "modules", "commit", "model", "data",
    "seed", "precision", "layout", "profile", "template", "script",
)  # fmt: skip
# Other names of the same fact.
_ALSO = {"gpu": ("gpu_type",), "cuda": ("rocm",), "nccl": ("rccl",), "torch": ("torch_asked",)}
NOT_RECORDED = "not recorded"


def provenance(inputs: ReportInputs) -> tuple[Fact, ...]:
    """Return the facts about the runs, each value with the number of runs that have it."""
    study, count = inputs.study, len(inputs.study.runs)
    by_name: dict[str, Counter[str]] = defaultdict(Counter)
    for of_run in _facts_of_runs(inputs):
        for name, value in of_run.items():
            by_name[name][value] += 1
    every: dict[str, str] = {}
    records = inputs.records
    # Step times that a table states are of whole runs.
    if ((records["metric"] == "step_time") & (records["parser"] != "table")).any():
        seconds = f", and {study.warmup.seconds:g} s" if study.warmup.seconds else ""
        every["warm-up excluded"] = f"{study.warmup.steps} steps{seconds}"
        every["value of a run"] = "median step time of the slowest rank"
    every["interval"] = "95 %, Welch on logarithms, over runs"
    every["analysed by"] = f"hpctrain {__version__}"
    if study.allow_mixed:
        every["allowed to differ"] = ", ".join(study.allow_mixed)
    if parsers := Counter({str(k): n for k, n in records["parser"].value_counts().items() if n}):
        ranked = [f"{name} {number}" for name, number in _counted(parsers)]
        every["records by parser"] = ", ".join(ranked)
    facts = [
        *_times(inputs.own),
        *(Fact(name=name, values=_counted(values)) for name, values in by_name.items()),
        *(Fact(name=name, values=((text, count),)) for name, text in every.items()),
    ]
    known = {fact.name for fact in facts}
    missing = [n for n in WANTED if not known.intersection((n, *_ALSO.get(n, ())))]
    if missing and by_name:
        facts.append(Fact(name=NOT_RECORDED, values=((", ".join(missing), count),)))
    return tuple(facts)


def _facts_of_runs(inputs: ReportInputs) -> Iterator[dict[str, str]]:
    """Yield the recorded facts of runs; those that the job printed take precedence.

    Nothing but its conditions is recorded of a run in a table.
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
    with_logs = own or inputs.transports or printed
    for expected in inputs.study.runs:
        run = expected.run_id
        facts = run_facts(own.get(run), inputs.transports.get(run)) if with_logs else {}
        facts = {**facts, **expected.conditions, **printed.get(run, {})}
        # Each variable is a separate fact.
        yield {name: value for name, value in facts.items() if name != "variables"}


def _counted(values: Counter[str]) -> tuple[tuple[str, int], ...]:
    """Return the values, the most frequent first."""
    return tuple(sorted(values.items(), key=lambda item: (-item[1], item[0])))


def _times(runs: Sequence[Run]) -> Iterator[Fact]:
    """Yield the ids of the jobs, and the first and last moment of each kind."""
    if jobs := Counter(filter(None, map(_job, runs))):
        yield Fact(name="jobs", values=_counted(jobs))
    statuses = [run.status for run in runs if run.status]
    moments: dict[str, list[float | None]] = {
        "submitted": [
            datetime.fromisoformat(run.submission.submitted).timestamp()
            for run in runs
            if run.submission
        ],
        "started": [status.started for status in statuses],
        "ended": [status.ended for status in statuses],
    }
    for name, values in moments.items():
        known = sorted(moment for moment in values if moment is not None)
        if known:
            ends = (datetime.fromtimestamp(one, timezone.utc) for one in (known[0], known[-1]))
            days = dict.fromkeys(f"{one:%Y-%m-%d %H:%M:%S} UTC" for one in ends)
            yield Fact(name=name, values=((" … ".join(days), len(known)),))


def _job(run: Run) -> str:
    """Return the scheduler's id of a run; a process id has no meaning later."""
    if run.submission is None or find_batch_system(run.submission.executor).this_machine:
        return ""
    return (run.status.job if run.status else "") or run.submission.native_id


_LINES = 3


def diagnoses(inputs: ReportInputs) -> dict[str, str]:
    """Return a short diagnosis of each failed run with logs: text of logs, to be escaped."""
    # Signatures are slow to load.
    from hpc_train.diagnosis.diagnose_runs import FAILED, diagnosis_of

    found = {}
    for run in inputs.own:
        if run.state in FAILED and is_folder(run.folder.logs):
            try:
                found[run.folder.run_id] = "\n".join(_lines(diagnosis_of(run)))
            except LogParseError as failure:
                found[run.folder.run_id] = failure.message
    return found


def _lines(diagnosis: Diagnosis) -> Iterator[str]:
    yield f"{diagnosis.outcome}: {diagnosis.why}"
    for finding in (one for one in diagnosis.findings if one.severity != "benign"):
        yield f"{finding.role}: {finding.title} [{finding.id}]"
        for one in finding.evidence[:_LINES]:
            yield f"  {one.source}:{one.line}  {one.text}" if one.line else f"  {one.source}"
        if finding.role == "root":
            yield f"  do: {finding.advice}"
    if diagnosis.last_lines:
        yield f"last lines of {diagnosis.last_lines[0].source}:"
        yield from (f"  {one.line}  {one.text}" for one in diagnosis.last_lines)
