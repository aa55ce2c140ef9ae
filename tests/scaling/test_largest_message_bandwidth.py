"""Bandwidth: the headline, and shares of links."""

from __future__ import annotations

import pytest

from hpc_train.base.metrics import UNITS
from hpc_train.logs.record import Record
from hpc_train.scaling.largest_message_bandwidth import headline, largest_busbw, share_of_link
from hpc_train.scaling.record_arrays import record_arrays


def record(metric: str, value: float, size: int | None, variant: str = "") -> Record:
    return Record(
        run="r",
        source="log",
        line=1,
        parser="nccl_tests",
        metric=metric,
        value=value,
        unit=UNITS[metric],
        scope="global",
        message_size=size,
        variant=variant,
    )


def test_headline_is_of_the_largest_messages_and_better_placement() -> None:
    found = headline(
        [
            record("busbw", 500.0, 1024, "in_place"),
            record("busbw", 458.56, 704643072, "in_place"),
            record("busbw", 458.60, 704643072, "out_of_place"),
            record("algbw", 900.0, 704643072, "out_of_place"),
            record("busbw", 382.257, None, "average"),
        ]
    )
    assert found == ("busbw", 458.60, 704643072, "out_of_place")


def test_headline_of_a_pair_and_of_nothing() -> None:
    pair = [record("algbw", 12.16486, 4194304), record("algbw", 13.0, 4194304, "peak")]
    assert headline(pair) == ("algbw", 12.16486, 4194304, "")
    assert headline([record("busbw", 52.9753, None, "average")]) is None


def test_share_of_a_link() -> None:
    # ib_write_bw of 363.47 Gb/s over NDR.
    assert share_of_link(363.47 / 8, 400) == pytest.approx(0.9087, abs=1e-4)


def test_busbw_is_that_of_the_largest_message() -> None:
    measured = [
        record("busbw", value, size, variant)
        for value, size, variant in (
            (900, 8, "in_place"), (180, 1024, "in_place"), (185, 1024, "out_of_place"),
            (400, None, "average"),
        )
    ]  # fmt: skip
    assert largest_busbw(record_arrays(measured)) == {"r": 185.0}
    assert largest_busbw(record_arrays([])) == {}
