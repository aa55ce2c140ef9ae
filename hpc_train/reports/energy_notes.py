"""Runs -> notes on the energy of a whole study: source, sum, and of how many runs it is known."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hpc_train.model.expected_study import ExpectedStudy
from hpc_train.reports.value_format import significant

if TYPE_CHECKING:
    import pandas as pd

_KWH_J = 3.6e6
_NAMED = 3
_PRINTED = "Energy of all runs, as they printed it"
_SPENT = (
    "kWh spent = energy of the jobs of all runs of the point from start to end, failed ones "
    "included; {source}"
)
_ACCOUNTED = (
    "ConsumedEnergyRaw of sacct: what the site's energy plug-in meters on the nodes of a job (some "
    "meter CPUs and memory only), on shared nodes that of other jobs too; of a requeued job, its "
    "last start"
)
_STATED = "as the table states it"


def energy_notes(study: ExpectedStudy, runs: pd.DataFrame) -> Iterator[str]:
    """Yield the energy of the study, printed and of whole jobs, in kWh if any run has it.

    The two are never added: programs print the energy of GPUs and steps, the accounting that of
    nodes from start to end.
    """
    if runs["energy_j"].notna().any():
        yield f"{_PRINTED}: {_sum(runs, 'energy_j')}."
    if runs["job_energy_j"].notna().any():
        own = any(kind.topology is not None for kind in study.kinds)
        source = _SPENT.format(source=_ACCOUNTED if own else _STATED)
        yield f"{source}. All points: {_sum(runs, 'job_energy_j')}."


def _sum(runs: pd.DataFrame, key: str) -> str:
    """Return `12.34 kWh, known of 14 of 15 runs, not of 4-r2`."""
    known = runs[key].notna()
    kwh = significant(float(runs[key].sum()) / _KWH_J)
    text = f"{kwh} kWh, known of {int(known.sum())} of {len(runs)} runs"
    unknown = runs["run_id"][~known]
    if not len(unknown):
        return text
    names = ", ".join(map(str, unknown.iloc[:_NAMED]))
    return f"{text}, not of {names}{' …' if len(unknown) > _NAMED else ''}"
