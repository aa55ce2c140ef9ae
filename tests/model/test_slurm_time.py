"""Times and sizes of memory as sbatch reads them, and energies as sacct prints them."""

from __future__ import annotations

import pytest

from hpc_train.model.units import slurm_memory, slurm_seconds


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
