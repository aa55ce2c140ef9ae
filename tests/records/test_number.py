"""Numbers as programs print them, in our units."""

from __future__ import annotations

import pytest

from hpc_train.records.parsing.printed_numbers import scaled
from tests.records.parse_text import values


@pytest.mark.parametrize(
    ("printed", "factor", "value"),
    [(51.0, 1e-3, 0.051), (30.17, 1e-3, 0.03017), (35.0, 1e-2, 0.35), (0.1 + 0.2, 1.0, 0.1 + 0.2)],
)
def test_another_unit_adds_no_digits(printed: float, factor: float, value: float) -> None:
    assert scaled(printed, factor) == value


def test_milliseconds_and_percent_of_a_log() -> None:
    log = b"iter 1: loss 2.1, time 51.00ms, mfu 35.00%\n"
    assert values(log, "step_time") == [0.051]
    assert values(log, "mfu") == [0.35]


def test_megabytes_of_a_log() -> None:
    log = b"# OSU MPI Bandwidth Test v5.6\n# Size      Bandwidth (MB/s)\n4        30.17\n"
    assert values(log, "algbw") == [0.03017]
