"""Bandwidth: that of the largest messages."""

from hpc_train.base.metrics import UNITS
from hpc_train.logs.record import Record
from hpc_train.reports.bandwidth import largest_busbw
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
