"""Durations and sizes, as people and Slurm write them."""

import pytest
from hypothesis import given, strategies as st

from hpc_train.base.values import Duration, Memory


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1h30m", 5400), ("90m", 5400), ("90min", 5400), ("2d", 172800), ("45s", 45),
        ("1h 30m", 5400), ("01:30:00", 5400), ("1:30:00", 5400), ("1-12:00:00", 129600),
        ("1-12:30", 131400), ("90:00", 5400),
    ],
)  # fmt: skip
def test_duration_is_read_as_it_is_written(text: str, seconds: int) -> None:
    assert Duration.parse(text) == seconds


@pytest.mark.parametrize(
    "raw",
    ["", "90", 90, "1x", "0s", "-1h", "1h30", None, True, "00:00:00", "99999d", "9" * 5000 + "h"],
)
def test_a_duration_without_a_unit_or_a_length_is_refused(raw: object) -> None:
    with pytest.raises(ValueError, match=r"is (not a time|longer than ten years); write 1h30m"):
        Duration.parse(raw)


@given(st.integers(min_value=1, max_value=10**7))
def test_a_duration_reads_what_it_wrote(seconds: int) -> None:
    assert Duration.parse(str(Duration(seconds))) == seconds


@pytest.mark.parametrize(
    ("text", "mebibytes"),
    [
        ("480G", 491520), ("4000M", 4000), ("1.5T", 1572864), ("64GiB", 65536), ("2048K", 2),
        ("1024K", 1), ("1048576K", 1024), ("3145728 KiB", 3072),
    ],
)  # fmt: skip
def test_memory_is_read_as_it_is_written(text: str, mebibytes: int) -> None:
    assert Memory.parse(text) == mebibytes


@pytest.mark.parametrize(
    "raw", ["0", "0G", "480", 480, "12P", "", "-1G", "100K", "1023K", "9999999T"]
)
def test_memory_that_would_round_to_zero_is_refused(raw: object) -> None:
    """Slurm reads 0 as all memory of the node."""
    with pytest.raises(ValueError, match="is not a memory size; write 480G"):
        Memory.parse(raw)


@given(st.integers(min_value=1, max_value=10**9))
def test_memory_reads_what_it_wrote(mebibytes: int) -> None:
    assert Memory.parse(str(Memory(mebibytes))) == mebibytes
