"""Report inputs -> report."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from hpc_train.model.expected_study import ExpectedStudy
from hpc_train.model.report import Report
from hpc_train.model.report_options import Paper, ReportOptions, Target
from hpc_train.pipeline.log_digests import Digests
from hpc_train.pipeline.report_gates import with_gate_results, with_site_gates
from hpc_train.pipeline.report_inputs import ReportInputs
from hpc_train.pipeline.report_provenance import provenance

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
