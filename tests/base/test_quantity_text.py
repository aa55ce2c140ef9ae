"""Quantities are written in a unit in which a reader can compare them."""

import pytest

from hpc_train.advice.advice import BYTES, TIME, Range, Units, hours_of, quantity_text, range_text
from hpc_train.base.values import slurm_memory, slurm_seconds


@pytest.mark.parametrize(
    ("value", "units", "text"),
    [
        (0.0, TIME, "0"), (3.71e-6, TIME, "3.71 us"), (2e-9, TIME, "0.00200 us"),
        (0.0123, TIME, "12.3 ms"), (0.123, TIME, "0.123 s"), (119, TIME, "119 s"),
        (120, TIME, "2.00 min"), (3600, TIME, "1.00 h"), (86400, TIME, "24.0 h"),
        (864000, TIME, "10.0 d"), (999 * 86400, TIME, "999 d"),
        (3652.5 * 86400, TIME, "10.0 years"), (375e3, BYTES, "375 kB"), (28e9, BYTES, "28.0 GB"),
        (1.2e15, BYTES, "1200 TB"), (12.0, BYTES, "12.0 B"), (410, hours_of("GPU"), "410 GPU-h"),
        (0.25, hours_of("GPU"), "15.0 GPU-min"), (1e-6, hours_of("rank"), "3.60 rank-ms"),
        (1000, hours_of(""), "1000 h"), (72934473, hours_of("GPU"), "72,934,473 GPU-h"),
    ],
)  # fmt: skip
def test_the_unit_suits_the_quantity(value: float, units: Units, text: str) -> None:
    assert quantity_text(value, units) == text


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (0.14, 0.15, "0.140 to 0.150 s"), (36.7, 5400, "36.7 s to 1.50 h"),
        (3.71e-6, None, ">= 3.71 us"), (0, 0.5, "<= 0.500 s"), (1.0, 1.0001, "1.00 s"),
        (0, 0, "0"),
    ],
)  # fmt: skip
def test_both_ends_share_a_unit_if_it_is_the_same(
    low: float, high: float | None, text: str
) -> None:
    assert range_text(Range(low=low, high=high), TIME) == text


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90 * 60), ("90:30", 90 * 60 + 30), ("1:30:15", 3600 + 30 * 60 + 15),
        ("1-12", 36 * 3600), ("1-12:30", 36 * 3600 + 30 * 60),
        ("1-12:30:15", 36 * 3600 + 30 * 60 + 15), (" 0 ", 0), ("1h", None), ("1:2:3:4", None),
        ("UNLIMITED", None),
    ],
)  # fmt: skip
def test_a_time_of_sbatch(text: str, seconds: int | None) -> None:
    assert slurm_seconds(text) == seconds


@pytest.mark.parametrize(
    ("text", "mebibytes"),
    [("4000", 4000), (" 4000 ", 4000), ("4G", 4096), ("4000M", 4000), ("0", None), ("all", None)],
)
def test_a_size_of_sbatch(text: str, mebibytes: int | None) -> None:
    assert slurm_memory(text) == mebibytes
