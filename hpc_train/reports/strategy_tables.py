"""Rows of strategies, and refused points -> their tables and notes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from hpc_train.jobs.study import axis_name
from hpc_train.reports.point_and_series_names import counted
from hpc_train.reports.report import Cell, Column, Report, ReportTable
from hpc_train.reports.study_tables import before_runs
from hpc_train.reports.value_format import ABSENT, Row, fixed, significant, whole
from hpc_train.runs.expected_runs import ExpectedStudy

SPEED, MEMORY, REFUSED = "strategies", "strategy_memory", "refused"
_MIB = 2**20
NOTE = (
    "Strategies: medians over the runs; speedup = ratio of the throughputs to single with the same "
    "model, data, precision and global batch; efficiency = speedup/ranks. Loss difference: of the "
    "last epoch, as a fraction of the loss of single. Idle: the share of a step in which a "
    "pipeline's rank waits, by the formula of its schedule. Exposed communication: the share of a "
    "step in which a rank only waits for communication, mean of the ranks and profiled steps."
)
MEMORY_NOTE = (
    "Memory and traffic: peak = resident set of a process, torch included, on a CPU; tensors, "
    "CUDA's context and NCCL on a GPU; "
    "states = parameters, gradients and optimiser state, mean of the ranks; sent = bytes of a rank "
    "in a step, measured at the interfaces of the node, which other programs may use as well. "
    "Formulas: ZeRO (SC20) and Megatron-LM (SC21); gloo's reduce-scatter counts twice."
)
_Text = Callable[[Row], str]


def with_strategies(report: Report, study: ExpectedStudy, rows: Sequence[dict[str, Any]]) -> Report:
    """Return the report with the tables of the strategies, and of the points that cannot run."""
    tables, notes = [], [*report.notes]
    if rows:
        tables += [
            _table("Strategies", SPEED, _speed_columns(rows), rows),
            _table("Memory and traffic of a rank", MEMORY, _memory_columns(), rows),
        ]
        notes += [NOTE, MEMORY_NOTE, *_reasons(rows)]
    if study.refused:
        tables.append(_refused(study))
    return msgspec.structs.replace(
        report, tables=before_runs(report, tuple(tables)), notes=tuple(notes)
    )


def _speed_columns(rows: Sequence[Row]) -> list[tuple[Column, _Text]]:
    columns = [
        *_name_columns(),
        (
            Column(key="step_time_s", heading="step\n[ms]"),
            lambda row: significant(_times(row["step_time_s"], 1000)),
        ),
        (
            Column(key="samples_per_second", heading="samples/s"),
            lambda row: significant(row["samples_per_second"]),
        ),
        (Column(key="speedup", heading="speedup"), lambda row: fixed(row["speedup"], 2)),
        (
            Column(key="efficiency", heading="efficiency\n[%]"),
            lambda row: fixed(row["efficiency"], 1, 100),
        ),
        (Column(key="mfu", heading="MFU\n[%]"), lambda row: fixed(row["mfu"], 1, 100)),
        (
            Column(key="exposed_communication", heading="exposed\ncomm. [%]"),
            lambda row: fixed(row["exposed_communication"], 1, 100),
        ),
        (Column(key="idle", heading="idle\n[%]"), lambda row: fixed(row["idle"], 1, 100)),
        (
            Column(key="loss_difference", heading="loss\ndifference"),
            lambda row: ABSENT if (x := row["loss_difference"]) is None else f"{x:.1e}",
        ),
    ]
    return [one for one in columns if any(row[one[0].key] is not None for row in rows)]


def _memory_columns() -> list[tuple[Column, _Text]]:
    shown = (
        ("memory_gib", "peak\n[MiB]", 1024),
        ("state_memory", "states\n[MiB]", 1024),
        ("expected_state_memory", "formula\n[MiB]", 1024),
        ("sent_bytes", "sent/step\n[MiB]", 1 / _MIB),
        ("expected_sent_bytes", "formula\n[MiB]", 1 / _MIB),
    )
    return [
        *_name_columns(),
        *(
            (Column(key=key, heading=heading), _scaled(key, factor))
            for key, heading, factor in shown
        ),
    ]


def _scaled(key: str, factor: float) -> _Text:
    return lambda row: significant(_times(row[key], factor))


def _times(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor


def _name_columns() -> list[tuple[Column, _Text]]:
    return [
        (Column(key="strategy", heading="strategy", align="left"), _name),
        (Column(key="ranks", heading="ranks"), lambda row: whole(row["ranks"])),
    ]


def _name(row: Row) -> str:
    """Return `hsdp 2,4`, `pipeline GPipe`."""
    return " ".join(filter(None, (row["strategy"], row["mesh"], row["schedule"])))


def _table(
    title: str, key: str, columns: Sequence[tuple[Column, _Text]], rows: Sequence[dict[str, Any]]
) -> ReportTable:
    return ReportTable(
        title=title,
        columns=tuple(column for column, _ in columns),
        rows=tuple(
            tuple(Cell(text=text(row), value=row[column.key]) for column, text in columns)
            for row in rows
        ),
        key=key,
        records=tuple(rows),
    )


def _reasons(rows: Sequence[Row]) -> Iterator[str]:
    """Yield why strategies have no speedup."""
    found: dict[str, list[str]] = {}
    for row in rows:
        if row["reason"]:
            found.setdefault(row["reason"], []).append(
                f"{_name(row)} on {counted(row['ranks'], 'rank')}"
            )
    for reason, names in found.items():
        yield f"No speedup: {', '.join(names)}: {reason}."


def _refused(study: ExpectedStudy) -> ReportTable:
    rows = [
        {
            "point": ", ".join(f"{axis_name(key)}={value}" for key, value in point.axes.items()),
            "reason": point.reason,
        }
        for point in study.refused
    ]
    return ReportTable(
        title="Points that cannot run",
        columns=(
            Column(key="point", heading="point", align="left"),
            Column(key="reason", heading="reason", align="left", prose=True),
        ),
        rows=tuple(tuple(Cell(text=text, value=text) for text in row.values()) for row in rows),
        key=REFUSED,
        records=tuple(rows),
    )
