"""Gates of a study and of its site -> verdicts of a report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from hpc_train.errors import HpcTrainError, ReportError
from hpc_train.model.expected_study import ExpectedStudy
from hpc_train.model.report import Report
from hpc_train.model.report_options import ReportOptions
from hpc_train.model.study import Gates, Regression
from hpc_train.pipeline.compare import side
from hpc_train.pipeline.report_inputs import ReportInputs
from hpc_train.regularfile import is_regular
from hpc_train.sites.gates_and_price import site_reporting

if TYPE_CHECKING:
    import pandas as pd

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
