"""Tables of the OSU micro-benchmarks: point to point, collectives, many pairs; versions 2 to 7."""

from __future__ import annotations

import pytest

from hpc_train.records.parse_stats import ParseStats
from tests.records.parse_text import parse, values

Found = list[tuple[int | None, str, str, float]]


def found(text: str) -> Found:
    return [
        (hit.message_size, hit.metric, hit.variant, hit.value) for _, hit, _ in parse(text.encode())
    ]


def test_bandwidth_in_units_of_a_million_bytes() -> None:
    text = """\
# OSU MPI-CUDA Bandwidth Test v5.9
# Send Buffer on DEVICE (D) and Receive Buffer on DEVICE (D)
# Size      Bandwidth (MB/s)
1                       7.50
4194304             12164.50
"""
    assert found(text) == [(1, "algbw", "", 0.0075), (4194304, "algbw", "", 12.1645)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "# OSU MPI Latency Test (Version 2.1)\n# Size\t\tLatency (us)\n0\t\t0.64\n",
            (0, "", 0.64),
        ),
        ("# Size Latency (us)\n8 2.48\n", (8, "", 2.48)),
        ("# OSU MPI Latency Test v7.5\n# Size       Avg Latency(us)\n8      2.48\n", (8, "", 2.48)),
        (
            "# OSU MPI Barrier Latency Test v5.8\n# Avg Latency(us)\n             1.25\n",
            (None, "", 1.25),
        ),
        (
            "# OSU MPI Non-blocking Allreduce Latency Test v6.2\n# Overall = Init + Compute\n\n"
            "# Size           Overall(us)       Compute(us)    Pure Comm.(us)        Overlap(%)\n"
            "8                      5.50              2.50              2.75             90.10\n",
            (8, "overall", 5.5),
        ),
    ],
)
def test_latency(text: str, expected: tuple[int | None, str, float]) -> None:
    assert found(text)[0] == (expected[0], "latency", *expected[1:])


def test_collective_in_full() -> None:
    text = """\
# OSU MPI Allreduce Latency Test v7.4
# Datatype: MPI_INT.
# Size  Avg Latency(us)  Min Latency(us)  Max Latency(us) Iterations  Validation P99 Tail Lat(us)
1048576          120.50            119.00            122.00         100       Pass           121.90
"""
    assert found(text) == [
        (1048576, "latency", "", 120.5),
        (1048576, "latency", "min", 119.0),
        (1048576, "latency", "max", 122.0),
        (1048576, "latency", "p99", 121.9),
    ]


def test_both_directions_and_many_pairs() -> None:
    text = """\
# OSU MPI Bi-Directional Bandwidth Test v5.6.2
# Size      Bandwidth (MB/s)
1024                 2000.00
# OSU MPI Multiple Bandwidth / Message Rate Test v5.7
# [ pairs: 4 ] [ window size: 64 ]
# Size                  MB/s        Messages/s
1024                 8000.00        7812500.00
# OSU MPI Bandwidth Test v7.5
# Size      Bandwidth (MB/s)        Validation P99 Tail BW(MB/s)
1024                 1000.00              Pass           900.00
"""
    assert found(text) == [
        (1024, "algbw", "bidirectional", 2.0),
        (1024, "algbw", "pairs", 8.0),
        (1024, "algbw", "", 1.0),
        (1024, "algbw", "p99", 0.9),
    ]


HEAD = b"# OSU MPI Bandwidth Test v5.6.2\n# Size      Bandwidth (MB/s)\n"


def test_doubled_line_counts_once_and_smaller_sizes_are_of_something_else() -> None:
    text = HEAD + b"8   60.0\n8   60.0\n16  120.0\n3  7.0\n32  240.0\n"
    assert values(text, "algbw") == [0.06, 0.12]


def test_warnings_amid_the_rows_are_passed_over() -> None:
    text = HEAD + b"8   60.0\n[node01:rank_0][dreg] evicted\n\n16  120.0\n"
    assert values(text, "algbw") == [0.06, 0.12]


@pytest.mark.parametrize("row", [b"8   60.0 16  120.0\n", b"8  60.0node01:1:2 [0]\n", b"8\n"])
def test_mixed_and_cut_rows_state_nothing(row: bytes) -> None:
    assert parse(HEAD + row) == []


def test_mixed_row_is_counted() -> None:
    census = ParseStats()
    parse(HEAD + b"8   60.0 16  120.0\n", census=census)
    assert sum(census.damaged.values()) == 1


@pytest.mark.parametrize("row", [b"9" * 400 + b"  1.0\n", b"8  1e999\n", b"8  nan\n", b"8  -nan\n"])
def test_hostile_rows_state_nothing(row: bytes) -> None:
    assert parse(HEAD + row) == []


def test_sizes_of_something_else_are_no_table() -> None:
    assert parse(b"# Size of the data set\n1024  5.0\n") == []
