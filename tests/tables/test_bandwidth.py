"""Bandwidth: factors of collectives, headline, shares of links; against published numbers."""

from __future__ import annotations

import pytest

from hpc_train.model.record import UNITS, Record
from hpc_train.tables.bandwidth import factor, fits, headline, share_of_link, wire


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


@pytest.mark.parametrize(
    ("collective", "ranks", "expected"),
    [
        ("all_reduce", 8, 1.75),
        ("all_reduce", 2, 1.0),
        ("all_gather", 8, 0.875),
        ("reduce_scatter", 4, 0.75),
        ("alltoall", 16, 0.9375),
        ("broadcast", 8, 1.0),
        ("sendrecv", 2, 1.0),
        ("broadcast", 1, 0.0),
    ],
)
def test_factor(collective: str, ranks: int, expected: float) -> None:
    assert factor(collective, ranks) == expected


@pytest.mark.parametrize(
    ("algbw", "busbw", "ranks"),
    # Rows of 8 H100, 2 x 4 A100, 2 x 8 H100 with EFA.
    [(262.06, 458.60, 8), (42.17, 73.79, 8), (259.78, 487.09, 16)],
)
def test_published_rows_fit_their_ranks(algbw: float, busbw: float, ranks: int) -> None:
    assert fits(algbw, busbw, ranks, "all_reduce")
    assert fits(algbw, busbw, ranks)
    assert not fits(algbw, busbw, 2 * ranks)
    assert not fits(algbw, busbw, ranks, "all_gather")


def test_bandwidth_of_processes_apart_fits_one_rank_only() -> None:
    assert fits(5242.9, 0.0, 1)
    assert not fits(5242.9, 0.0, 8)


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


def test_wire_of_four_nodes_as_published() -> None:
    sent = wire(377.34, ranks=32, nodes=4)
    assert sent == pytest.approx(36.52, abs=0.005)
    # 73 % of a port of 400 Gb/s for each GPU.
    assert share_of_link(sent or 0.0, 400) == pytest.approx(0.73, abs=0.005)


def test_nothing_crosses_the_wire_of_one_node() -> None:
    assert wire(458.6, ranks=8, nodes=1) is None


def test_share_of_a_link() -> None:
    # ib_write_bw of 363.47 Gb/s over NDR.
    assert share_of_link(363.47 / 8, 400) == pytest.approx(0.9087, abs=1e-4)
