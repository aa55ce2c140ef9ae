"""Bandwidth: the headline, and shares of links."""

from __future__ import annotations

import pytest

from hpc_train.errors import ReportError, UnknownNameError
from hpc_train.model.record import UNITS, Record
from hpc_train.tables.bandwidth import bus_factor, headline, share_of_link, wire_bandwidth


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


def test_bus_bandwidth_is_that_of_a_link() -> None:
    assert bus_factor("all_reduce", 8) == 1.75
    assert bus_factor("all_gather", 8) == bus_factor("alltoall", 8) == 0.875
    assert bus_factor("reduce_scatter", 2) == 0.5
    assert bus_factor("broadcast", 8) == bus_factor("reduce", 2) == 1
    with pytest.raises(UnknownNameError, match="did you mean 'all_reduce'"):
        bus_factor("allreduce", 8)
    with pytest.raises(ReportError, match="2 ranks or more, not 1"):
        bus_factor("all_reduce", 1)


def test_what_passes_the_wire() -> None:
    # ml-engineering@744d01e network/README: 4 nodes x 8 B200, 4 GiB, of 50 GB/s for each GPU.
    wire = wire_bandwidth(377.34, 4, 32)
    assert wire == pytest.approx(36.52, abs=0.005)
    assert share_of_link(wire, 400) == pytest.approx(0.73, abs=0.005)
    # 2 nodes of 8: above line rate on the bus, below it on the wire.
    assert 8 * wire_bandwidth(487, 2, 16) == pytest.approx(260, abs=1)
    with pytest.raises(ReportError, match="2 nodes or more"):
        wire_bandwidth(487, 1, 8)
