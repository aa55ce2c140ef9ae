"""Report inputs -> report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from hpc_train.errors import HpcTrainError, ReportError
from hpc_train.model.expected_study import ExpectedStudy
from hpc_train.model.report import Report
from hpc_train.model.report_options import Paper, ReportOptions, Target
from hpc_train.model.study import Gates, Regression
from hpc_train.pipeline.compare import side
from hpc_train.pipeline.log_digests import Digests
from hpc_train.pipeline.report_inputs import ReportInputs
from hpc_train.pipeline.report_provenance import provenance
from hpc_train.regularfile import is_regular
from hpc_train.sites.gates_and_price import site_reporting

if TYPE_CHECKING:
    import pandas as pd

    from hpc_train.reports.figures.plot_data import Measured

DEFAULT = ReportOptions()


def build_report(inputs: ReportInputs, options: ReportOptions = DEFAULT) -> Report:
    """Compute the tables of a study and, if requested, its figures.

    Raises:
        ReportError: the runs contradict what the study declares.
    """
    from hpc_train.reports.caveats import with_run_caveats
    from hpc_train.reports.fit_and_forecast_tables import with_laws
    from hpc_train.reports.scaling_report import scaling_report
    from hpc_train.reports.strategy_tables import with_strategies
    from hpc_train.reports.table_layout import all_columns
    from hpc_train.tables.caveats import apart_points, slow_runs
    from hpc_train.tables.fastest_series import fastest_frame
    from hpc_train.tables.node_step_times import node_frame
    from hpc_train.tables.scaling_fits import fits
    from hpc_train.tables.speedup import speedup_frame
    from hpc_train.tables.strategy_comparison import strategy_rows

    inputs = msgspec.structs.replace(inputs, study=with_site_gates(inputs, options))
    runs, notes = _comparable_runs(inputs)
    study = msgspec.structs.replace(inputs.study, notes=(*inputs.study.notes, *notes))
    points = speedup_frame(runs, study)
    laws = fits(points, options.forecast, force=options.force)
    compared = fastest_frame(runs, points, study)
    columns = None if options.wide else options.columns
    report = scaling_report(study, runs, points, compared, columns=columns)
    report = with_strategies(report, study, strategies := strategy_rows(runs, inputs.records))
    nodes = node_frame(study, inputs.records)
    report = with_run_caveats(report, apart_points(runs, points), slow_runs(runs), points)
    report = with_laws(report, laws, forecast=options.forecast is not None)
    if options.target is not None:
        report = _with_target(report, inputs, (runs, points), options.target)
    report = with_gate_results(report, study, (runs, points), inputs, options)
    report = _with_provenance(report, inputs, options)
    report = all_columns(report) if options.wide else report
    if not options.figures or not points["n_ok"].any():
        return report
    from hpc_train.reports.figures.plot_data import Measured

    return _with_figures(report, study, Measured(runs, points, laws, nodes, strategies), options)


def _with_figures(
    report: Report, study: ExpectedStudy, measured: Measured, options: ReportOptions
) -> Report:
    from hpc_train.reports.figures import FIGURES, MAIN, figures

    names = (MAIN,) if options.main_figure_only else tuple(FIGURES)
    drawn = figures(study, measured, options.images, names, options.paper)
    return msgspec.structs.replace(report, figures=drawn)


def _with_provenance(report: Report, inputs: ReportInputs, options: ReportOptions) -> Report:
    facts = provenance(inputs, Digests() if options.digests else None)
    unfinished = bool(inputs.study.unfinished)
    report = msgspec.structs.replace(report, partial=unfinished, provenance=facts)
    if not options.details:
        return report
    from hpc_train.pipeline.run_details import details

    run_details, scripts = details(inputs)
    return msgspec.structs.replace(report, details=run_details, scripts=scripts)


def _comparable_runs(inputs: ReportInputs) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Return the runs in series that may be compared, with their flags, and why series were split.

    Raises:
        ReportError: see `run_frame` and `separated`.
    """
    from hpc_train.tables.implausible_values import with_implausible
    from hpc_train.tables.runs import run_frame
    from hpc_train.tables.split_series import separated

    runs, notes = separated(run_frame(inputs.study, inputs.records), inputs.study)
    return with_implausible(runs), notes


def without_result(report: Report) -> bool:
    """Whether a run has neither a result nor a bandwidth that a gate decided on."""
    from hpc_train.reports.gate_table_and_sentences import without_result as runs_without

    return any(runs_without(report))


def open_checks(report: Report) -> tuple[str, ...]:
    """Return a line for each point at which a gate of the report is not decided."""
    from hpc_train.reports.gate_table_and_sentences import undecided

    return undecided(report)


def gates_in_words(report: Report) -> str:
    """Return which gates of the report were checked, and which were not and why."""
    from hpc_train.reports.gate_table_and_sentences import checked_gates, verdicts_of

    return checked_gates(verdicts_of(report))


def unreadable_gates(report: Report) -> bool:
    """Whether a gate of the report could not be read: the profile of the site is missing."""
    from hpc_train.reports.gate_table_and_sentences import verdicts_of

    return any(verdict.outcome == "error" for verdict in verdicts_of(report))


def target(text: str | None) -> Target | None:
    """Return the target of `accuracy=0.93` or `loss=0.2`; None without one.

    Raises:
        SpecError: an unknown metric, or a value that is not a number.
    """
    from hpc_train.specs.report_options import target_of

    return target_of(text)


def paper(width: str | None, *, title: bool) -> Paper:
    """Return the paper of `3.3in`, with a title or not; None is a screen.

    Raises:
        ReportError: no length, or a width that no figure can have.
    """
    from hpc_train.specs.report_options import paper_of

    return paper_of(width, title=title)


def _with_target(
    report: Report, inputs: ReportInputs, frames: tuple[pd.DataFrame, pd.DataFrame], target: Target
) -> Report:
    from hpc_train.reports.target_table import with_target
    from hpc_train.tables.time_to_accuracy_by_point import target_rows

    return with_target(report, target_rows(inputs.records, *frames, target), target)


# CSC, "How to access the Mahti large partition": docs.csc.fi/accounts/.
RULES = {"csc": Gates(node_counts=3, efficiency=0.75, doubling=1.5, script=True)}
RULE_WORDS = {
    "csc": "Rule csc: for access to Mahti's large partition CSC Finland requires results at 3 node "
    "counts or more, an efficiency of 75 %, 1.5 times the speed on twice the nodes, and the job "
    "script."
}

OF_REGRESSION = "reference of the regression gate: "
SITE_UNKNOWN = "The gates, the price and the network of the site are not known: {why}."


class Reference(NamedTuple):
    """The reference of the regression gate: rows of its runs, and lines on implausible values."""

    runs: pd.DataFrame
    implausible: tuple[str, ...]


def with_site_gates(inputs: ReportInputs, options: ReportOptions) -> ExpectedStudy:
    """Return the study with options, gates, and the price of its site.

    The command line takes precedence over the study, and the study over the site. If the runs are
    from several sites, no price is used.
    """
    site, unknown = site_reporting(inputs.own)
    study = msgspec.structs.replace(
        inputs.study,
        site_unknown=inputs.study.site_unknown or unknown,
        allow_mixed=options.allow_mixed or inputs.study.allow_mixed,
        interval=options.interval or inputs.study.interval,
        bands=options.bands,
    )
    gates = merged_gates(study.gates, site.gates)
    if options.against is not None:
        tolerance = gates.regression.tolerance if gates.regression else 0.05
        regression = Regression(against=options.against, tolerance=tolerance)
        gates = msgspec.structs.replace(gates, regression=regression)
    if study.price_per_gpu_hour is not None:
        return msgspec.structs.replace(study, gates=gates)
    return msgspec.structs.replace(
        study, gates=gates, price_per_gpu_hour=site.price_per_gpu_hour, currency=site.currency
    )


def merged_gates(*layers: Gates) -> Gates:
    """Return the gates of several layers, in order of precedence; a rule follows its layer."""
    values: dict[str, Any] = {}
    for layer in layers:
        for gates in (layer, RULES[layer.rule] if layer.rule else Gates()):
            stated = msgspec.structs.asdict(gates).items()
            values = {**{name: v for name, v in stated if v is not None}, **values}
    return Gates(**values)


def with_gate_results(
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
    from hpc_train.reports.gate_table_and_sentences import gated
    from hpc_train.reports.gate_verdicts import OF_RUN, GateInputs, verdicts
    from hpc_train.reports.plain_rows import plain_rows
    from hpc_train.reports.plausible_gate import reference_caveats
    from hpc_train.tables.deciding_runs import deciding
    from hpc_train.tables.largest_message_bandwidth import largest_busbw

    runs, points = tables
    report = msgspec.structs.replace(report, notes=(*report.notes, *_notes(study)))
    old, unknown = _reference_or_reason(study, options)
    changes, implausible = _changes(old, runs, study), old.implausible if old else ()
    if study.gates.regression is not None:
        named = reference_caveats(study.gates.regression.against, implausible, changes)
        report = msgspec.structs.replace(report, summary=(*named, *report.summary))
    scripts = sum(is_regular(run.folder.script) for run in inputs.own)
    gate_inputs = GateInputs(
        scripts=(len(inputs.own), scripts),
        busbw=largest_busbw(inputs.records) if study.gates.busbw else {},
        runs=tuple(plain_rows(deciding(runs)[[name for name in OF_RUN if name in runs]])),
        site_unknown=study.site_unknown,
        changes=changes,
        implausible=implausible,
        reference_unknown=unknown,
    )
    return gated(report, verdicts(study.gates, plain_rows(points), gate_inputs))


def _notes(study: ExpectedStudy) -> Iterator[str]:
    if study.gates.rule:
        yield RULE_WORDS[study.gates.rule]
    if study.site_unknown:
        yield SITE_UNKNOWN.format(why=study.site_unknown)


def _reference_or_reason(
    study: ExpectedStudy, options: ReportOptions
) -> tuple[Reference | None, str]:
    """Return the reference of the regression gate, or why it cannot be read.

    Raises:
        ReportError: it was named on the command line.
    """
    try:
        return _reference(study, options), ""
    except ReportError as failure:
        if options.against is not None:
            raise
        return None, failure.message.removeprefix(OF_REGRESSION)


def _reference(study: ExpectedStudy, options: ReportOptions) -> Reference | None:
    """Return the regression gate's reference.

    Raises:
        ReportError: it does not exist.
    """
    from hpc_train.reports.caveats import implausible_of_side

    if study.gates.regression is None or options.search is None:
        return None
    word = study.gates.regression.against
    try:
        old = side(word, options.search, study.allow_mixed)
    except HpcTrainError as failure:
        raise ReportError(f"{OF_REGRESSION}{failure.message}", failure.hint) from None
    return Reference(old.runs, tuple(implausible_of_side(old.points)))


def _changes(
    old: Reference | None, runs: pd.DataFrame, study: ExpectedStudy
) -> tuple[dict[str, Any], ...]:
    from hpc_train.reports.plain_rows import plain_rows
    from hpc_train.tables.comparison import Demands, comparison_frame

    if old is None:
        return ()
    demands = Demands(allow_mixed=study.allow_mixed)
    return tuple(plain_rows(comparison_frame(old.runs, runs, demands)))
