"""Program, machine and measured steps -> the table of what is known, with sources."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hpc_train.model.advice import MeasuredStep
from hpc_train.model.machine_size import MachineSize
from hpc_train.model.program_size import ProgramSize
from hpc_train.model.report import Cell, Column, ReportTable


def known_values_table(
    program: ProgramSize, machine: MachineSize, measured: Sequence[MeasuredStep]
) -> ReportTable:
    """Return every value that the advice rests on, and where it comes from."""
    known = [
        (name, getattr(subject, name), source)
        for subject in (program, machine)
        for name, source in subject.sources.items()
    ]
    steps = [("step [s]", one.seconds, one.source) for one in measured]
    rows = [
        (Cell(text=name, value=name), Cell(text=_text(value), value=value),
         Cell(text=source, value=source))
        for name, value, source in (*known, *steps)
    ]  # fmt: skip
    return ReportTable(
        title="What is known",
        columns=(
            Column(key="name", heading="value", align="left"),
            Column(key="value", heading="", align="left", prose=True),
            Column(key="source", heading="from", align="left", prose=True),
        ),
        rows=tuple(rows),
        key="sources",
        records=tuple(
            {"name": name.value, "value": value.value, "source": source.value}
            for name, value, source in rows
        ),
    )


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {number:g}" for key, number in value.items())
    return f"{value:.6g}" if isinstance(value, float) else str(value)
