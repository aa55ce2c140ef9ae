"""The energy of a whole study in notes: its source, its sum, and of which runs it is unknown."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from hpc_train.model.expected_study import ExpectedRun
from hpc_train.reports.energy_notes import energy_notes
from hpc_train.tables.runs import run_frame
from tests.tables.studies import expected, rate, record, study


def notes(runs: Sequence[ExpectedRun], printed: float | None = None) -> list[str]:
    asked = study(runs)
    records = [one for run in runs for one in rate(run.run_id, 10)]
    if printed is not None:
        records.append(record(runs[0].run_id, "energy", printed))
    return list(energy_notes(asked, run_frame(asked, records)))


def runs(*energies: float | None, own: bool = True) -> list[ExpectedRun]:
    made = [expected(f"r{place}") for place, _ in enumerate(energies)]
    if not own:
        made = [msgspec.structs.replace(run, topology=None, sizes={"nodes": 1}) for run in made]
    return [
        msgspec.structs.replace(run, job_energy_j=energy)
        for run, energy in zip(made, energies, strict=True)
    ]


def test_without_energies_there_is_no_note() -> None:
    assert notes(runs(None, None)) == []


@pytest.mark.parametrize(
    ("energies", "end"),
    [
        ((3.6e6, 7.2e6), "All points: 3.000 kWh, known of 2 of 2 runs."),
        ((3.6e6, None), "All points: 1.000 kWh, known of 1 of 2 runs, not of r1."),
        (
            (3.6e6, None, None, None, None),
            "All points: 1.000 kWh, known of 1 of 5 runs, not of r1, r2, r3 \u2026.",
        ),
    ],
)
def test_a_sum_names_the_runs_that_it_lacks(energies: Sequence[float | None], end: str) -> None:
    (note,) = notes(runs(*energies))
    assert note.startswith("kWh spent = energy of the jobs of all runs of the point")
    assert note.endswith(end)


def test_the_source_is_the_accounting_or_the_table() -> None:
    assert "; ConsumedEnergyRaw of sacct: " in notes(runs(5.0))[0]
    assert "; as the table states it. All" in notes(runs(5.0, own=False))[0]


def test_printed_energy_comes_first_and_is_not_added() -> None:
    first, second = notes(runs(3.6e6, 3.6e6), printed=1.8e6)
    assert first == (
        "Energy of all runs, as they printed it: 0.5000 kWh, known of 1 of 2 runs, not of r1."
    )
    assert "All points: 2.000 kWh, known of 2 of 2 runs." in second
