"""Results of gates -> their table and sentences, and the runs that a bandwidth gate decided."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from typing import Any

import msgspec

from hpc_train.model.expected_study import CONTRADICTED, EXCLUDED
from hpc_train.model.report import Cell, Column, GateResult, Report, ReportTable
from hpc_train.model.study import Gates
from hpc_train.reports.caveats import NAMED
from hpc_train.reports.plain_rows import Row
from hpc_train.reports.plausible_gate import with_verdict_caveats
from hpc_train.reports.value_format import ABSENT

HEADINGS = ("gate", "limit", "met", "not met at", "not decided at")
PointKey = tuple[Any, ...]
_SIZES = ("series", "nodes", "gpus_per_node", "tasks_per_node", "ranks", "gpus")
_FAILED = ("not met", "error")
# Gates with a default, which are tested unless a study switches them off.
_ALWAYS = ("missing", "plausible", "accuracy", "loss")
_ABSENT = {
    "missing": "switched off",
    "plausible": "switched off",
    "accuracy": "not recorded at the baseline",
    "loss": "not recorded at the baseline",
}
GATES = tuple(name for name in Gates.__struct_fields__ if name != "rule")
UNREAD = "Caveats: not every gate could be read. {}"
NOTHING = "not decided at any point"
_DONE = ("COMPLETED", EXCLUDED)


def gated(report: Report, found: Sequence[GateResult]) -> Report:
    """Return the report with the verdicts: a table, caveats, and in `checks` those not met."""
    checks = tuple(sentence(verdict) for verdict in found if verdict.outcome in _FAILED)
    table = _table(found)
    unread = [UNREAD.format(checked_gates(found))] if _errors(found) else []
    return msgspec.structs.replace(
        report,
        summary=(*with_verdict_caveats(report.summary, found), *unread),
        tables=(*report.tables, table),
        checks=(*report.checks, *checks),
        notes=(*report.notes, *([checked_gates(found)] if table.rows else [])),
    )


def checked_gates(found: Sequence[GateResult]) -> str:
    """Return which gates were checked, and which were not and why."""
    decided = dict.fromkeys(v.gate for v in found if v.outcome in ("met", "not met"))
    empty = [v.gate for v in found if v.reason.endswith(NOTHING)]
    reasons: dict[str, list[str]] = {}
    for verdict in _errors(found):
        reasons.setdefault(verdict.reason, []).append(verdict.gate)
    unread = {gate for gates in reasons.values() for gate in gates}
    for gate in (gate for gate in GATES if gate not in unread):
        if gate in empty or any(v.gate == gate for v in found if gate not in decided):
            reasons.setdefault(NOTHING, []).append(gate)
        elif gate not in decided:
            reasons.setdefault(_ABSENT.get(gate, "no limit set"), []).append(gate)
    checked = ", ".join(gate for gate in decided if gate not in empty) or "none"
    others = "; ".join(f"{', '.join(gates)} ({reason})" for reason, gates in reasons.items())
    return f"Gates checked: {checked}. Not checked: {others or 'none'}."


def _errors(found: Sequence[GateResult]) -> list[GateResult]:
    return [verdict for verdict in found if verdict.outcome == "error"]


def sentence(verdict: GateResult) -> str:
    """Return `gate not met: 8 GPUs: efficiency 0.600 [0.590, 0.610] < 0.75`."""
    if verdict.gate == "missing" and verdict.outcome == "not met":
        return f"missing point: {verdict.where}: {verdict.reason}"
    return f"gate {verdict.outcome}: {verdict.where}: {verdict.reason}"


def undecided(report: Report) -> tuple[str, ...]:
    """Return a line for each point at which a gate of a report is not decided."""
    return tuple(sentence(v) for v in verdicts_of(report) if v.outcome == "not decided")


def verdicts_of(report: Report) -> tuple[GateResult, ...]:
    """Return the verdicts of a report."""
    rows = (row for table in report.tables if table.key == "gates" for row in table.records)
    return tuple(msgspec.convert(row, GateResult) for row in rows)


def _table(found: Sequence[GateResult]) -> ReportTable:
    """Return one row per gate, without met points; the records have all of them."""
    gates = dict.fromkeys(verdict.gate for verdict in found)
    if not any(v.gate not in _ALWAYS or v.outcome != "met" for v in found):
        gates = {}
    return ReportTable(
        title="Gates",
        columns=tuple(
            Column(key=name, heading=name, align="left", prose=name.endswith(" at"))
            for name in HEADINGS
        ),
        rows=tuple(_row([v for v in found if v.gate == gate]) for gate in gates),
        key="gates",
        records=tuple(msgspec.structs.asdict(verdict) for verdict in found),
    )


def _row(own: Sequence[GateResult]) -> tuple[Cell, ...]:
    limit = own[0].limit
    met = sum(verdict.outcome == "met" for verdict in own)
    return (
        Cell(text=own[0].gate, value=own[0].gate),
        Cell(text=ABSENT if limit is None else f"{limit:g}", value=limit),
        Cell(text=f"{met} of {len(own)}", value=met),
        *(
            Cell(text=_points(dict.fromkeys(v.where for v in own if v.outcome in outcomes)))
            for outcomes in (_FAILED, ("not decided",))
        ),
    )


def _points(named: Collection[str]) -> str:
    more = f" and {len(named) - NAMED} more" if len(named) > NAMED else ""
    return ", ".join(islice(named, NAMED)) + more or ABSENT


def key_of(row: Row) -> PointKey:
    """Return the key of a point, or of the point of a run."""
    return tuple(row.get(name) for name in _SIZES)


def benchmarked(runs: Sequence[Row], measured: Collection[str]) -> dict[PointKey, int]:
    """Return the points whose runs are all successful benchmarks, with their number of runs."""
    found: dict[PointKey, int] = {}
    lacking = set()
    for row in runs:
        if row["state"] == EXCLUDED:
            continue
        if _is_benchmark(row, measured):
            found[key_of(row)] = found.get(key_of(row), 0) + 1
        else:
            lacking.add(key_of(row))
    return {key: count for key, count in found.items() if key not in lacking}


def without_result(report: Report) -> Iterator[Row]:
    """Yield the runs that have neither a result nor a bandwidth that a gate decided on."""
    measured = {verdict.where for verdict in verdicts_of(report) if verdict.gate == "busbw"}
    for row in _lacking(report):
        if row["state"] not in _DONE and not _is_benchmark(row, measured):
            yield row


def _lacking(report: Report) -> Iterator[Row]:
    """Yield the rows of the table of runs: those that are not ok."""
    for table in report.tables:
        names = [column.key for column in table.columns]
        for row in table.rows if table.key == "runs" else ():
            yield dict(zip(names, (cell.value for cell in row), strict=True))


def _is_benchmark(row: Row, measured: Collection[str]) -> bool:
    """Whether a run succeeded and has a bandwidth, and its log does not contradict its size."""
    own = row["state"] == "UNPARSED" and row["run_id"] in measured
    return own and not str(row["problem"]).startswith(CONTRADICTED)
