"""Evidence -> report."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from hpc_train.model.report import Report
from hpc_train.model.report_options import ReportOptions
from hpc_train.model.training_target import Target
from hpc_train.pipeline.log_digests import Digests
from hpc_train.pipeline.report_gates import checked, governed
from hpc_train.pipeline.report_inputs import ReportInputs
from hpc_train.pipeline.report_provenance import provenance

if TYPE_CHECKING:
    import pandas as pd

DEFAULT = ReportOptions()


def build_report(found: ReportInputs, asked: ReportOptions = DEFAULT) -> Report:
    """Compute the tables of a study and, if requested, its figures.

    Raises:
        ReportError: the runs contradict what the study declares.
    """
    from hpc_train.reports.law_tables import with_laws
    from hpc_train.reports.scaling_report import scaling_report
    from hpc_train.tables.runs import run_frame
    from hpc_train.tables.scaling_fits import fits
    from hpc_train.tables.speedup import speedup_frame
    from hpc_train.tables.split_series import separated

    study = governed(found, asked)
    found = msgspec.structs.replace(found, study=study)
    runs, apart = separated(run_frame(study, found.records), study)
    study = msgspec.structs.replace(study, notes=(*study.notes, *apart))
    points = speedup_frame(runs, study)
    laws = fits(points, asked.forecast, force=asked.force)
    report = scaling_report(study, runs, points, wide=asked.wide)
    report = with_laws(report, laws, forecast=asked.forecast is not None)
    if asked.target is not None:
        report = _with_target(report, found, (runs, points), asked.target)
    report = checked(report, study, (runs, points), found, asked)
    facts = provenance(found, Digests() if asked.digests else None)
    report = msgspec.structs.replace(report, partial=bool(study.unfinished), provenance=facts)
    if asked.details:
        from hpc_train.pipeline.run_details import details

        each, scripts = details(found)
        report = msgspec.structs.replace(report, details=each, scripts=scripts)
    if not asked.figures or not points["n_ok"].any():
        return report
    from hpc_train.reports.figures import FIGURES, MAIN, figures
    from hpc_train.reports.figures.plot_data import Measured
    from hpc_train.tables.node_step_times import node_frame

    measured = Measured(runs, points, laws, node_frame(study, found.records))
    names = (MAIN,) if asked.main_figure_only else tuple(FIGURES)
    return msgspec.structs.replace(report, figures=figures(study, measured, asked.images, names))


def without_result(report: Report) -> bool:
    """Whether a run has neither a result nor a bandwidth that a gate decided on."""
    from hpc_train.reports.gate_results import without_result as runs_without

    return any(runs_without(report))


def open_checks(report: Report) -> tuple[str, ...]:
    """Return a line for each point at which a gate of the report is not decided."""
    from hpc_train.reports.gate_results import undecided

    return undecided(report)


def target(text: str | None) -> Target | None:
    """Return the target of `accuracy=0.93` or `loss=0.2`; None without one.

    Raises:
        SpecError: an unknown metric, or a value that is no number.
    """
    from hpc_train.specs.targets import target_of

    return target_of(text)


def _with_target(
    report: Report, found: ReportInputs, frames: tuple[pd.DataFrame, pd.DataFrame], target: Target
) -> Report:
    from hpc_train.reports.target_table import with_target
    from hpc_train.tables.targets import target_rows

    return with_target(report, target_rows(found.records, *frames, target), target)
