"""Times and sizes of memory as sbatch reads them, and energies as sacct prints them."""

from __future__ import annotations

import pytest

from hpc_train.model.units import slurm_joules, slurm_memory, slurm_seconds


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90 * 60),
        ("90:30", 90 * 60 + 30),
        ("1:30:15", 3600 + 30 * 60 + 15),
        ("1-12", 36 * 3600),
        ("1-12:30", 36 * 3600 + 30 * 60),
        ("1-12:30:15", 36 * 3600 + 30 * 60 + 15),
        (" 0 ", 0),
        ("1h", None),
        ("1:2:3:4", None),
        ("UNLIMITED", None),
    ],
)
def test_a_time_of_sbatch(text: str, seconds: int | None) -> None:
    assert slurm_seconds(text) == seconds


@pytest.mark.parametrize(
    ("text", "mebibytes"),
    [("4000", 4000), (" 4000 ", 4000), ("4G", 4096), ("4000M", 4000), ("0", None), ("all", None)],
)
def test_a_size_of_sbatch(text: str, mebibytes: int | None) -> None:
    assert slurm_memory(text) == mebibytes


@pytest.mark.parametrize(
    ("text", "joules"),
    [
        ("12300", 12300),
        ("12.3K", 12300),
        (" 4.58M ", 4.58e6),
        ("4.19G", 4.19e9),
        ("1.5P", 1.5e15),
        ("0", None),
        ("0.00K", None),
        ("", None),
        # NO_VAL64, INFINITE64, and what ConsumedEnergy made of the first.
        ("18446744073709551614", None),
        ("18446744073709551615", None),
        ("18446.74P", None),
    ],
)
def test_an_energy_of_sacct(text: str, joules: float | None) -> None:
    assert slurm_joules(text) == pytest.approx(joules)


@pytest.mark.parametrize("text", ["-5", "12.3k", "12 300", "5J", "1e5", "nan", "K", "5.", "٢"])
def test_no_energy_of_sacct(text: str) -> None:
    with pytest.raises(ValueError, match="is no energy of sacct; write joules: 12300 or"):
        slurm_joules(text)
