"""Verdicts on gates -> a table of the report, and the checks that failed."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from hpc_train.model.gate import Verdict
from hpc_train.model.report import Cell, Column, Report, ReportTable
from hpc_train.reports.numbers import ABSENT

HEADINGS = ("gate", "limit", "met", "not met at", "not decided at")


def gated(report: Report, found: Sequence[Verdict]) -> Report:
    """Return the report with the verdicts: a table, and in `checks` those that are not met."""
    checks = tuple(sentence(verdict) for verdict in found if verdict.outcome == "not met")
    return msgspec.structs.replace(
        report, tables=(*report.tables, _table(found)), checks=(*report.checks, *checks)
    )


def sentence(verdict: Verdict) -> str:
    """Return `gate not met: 8 GPUs: efficiency 0.600 [0.590, 0.610] < 0.75`."""
    if verdict.gate == "missing" and verdict.outcome == "not met":
        return f"missing point: {verdict.where}: {verdict.reason}"
    return f"gate {verdict.outcome}: {verdict.where}: {verdict.reason}"


def undecided(report: Report) -> tuple[str, ...]:
    """Return a line for each point at which a gate of a report is not decided."""
    return tuple(sentence(v) for v in verdicts_of(report) if v.outcome == "not decided")


def verdicts_of(report: Report) -> tuple[Verdict, ...]:
    """Return the verdicts of a report."""
    rows = (row for table in report.tables if table.key == "gates" for row in table.records)
    return tuple(msgspec.convert(row, Verdict) for row in rows)


def _table(found: Sequence[Verdict]) -> ReportTable:
    """Return one row per gate, without met points; the records have all of them."""
    gates = dict.fromkeys(verdict.gate for verdict in found)
    if not any(v.gate != "missing" or v.outcome != "met" for v in found):
        gates = {}
    return ReportTable(
        title="Gates",
        columns=tuple(Column(key=name, heading=name, align="left") for name in HEADINGS),
        rows=tuple(_row([v for v in found if v.gate == gate]) for gate in gates),
        key="gates",
        records=tuple(msgspec.structs.asdict(verdict) for verdict in found),
    )


def _row(own: Sequence[Verdict]) -> tuple[Cell, ...]:
    limit = own[0].limit
    met = sum(verdict.outcome == "met" for verdict in own)
    return (
        Cell(text=own[0].gate, value=own[0].gate),
        Cell(text=ABSENT if limit is None else f"{limit:g}", value=limit),
        Cell(text=f"{met} of {len(own)}", value=met),
        *(
            Cell(text=", ".join(v.where for v in own if v.outcome == outcome) or ABSENT)
            for outcome in ("not met", "not decided")
        ),
    )
