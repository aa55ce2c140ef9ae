"""Tables of perftest: units, service levels, runs by duration, latencies."""

from __future__ import annotations

import pytest

from hpc_train.records.parse_stats import ParseStats
from tests.records.parse_text import parse

LINE = "-" * 87
Found = list[tuple[int | None, str, str, float, str]]


def found(*lines: str) -> Found:
    return [
        (hit.message_size, hit.metric, hit.variant, hit.value, hit.scope)
        for _, hit, _ in parse("\n".join(lines).encode())
    ]


def test_run_by_duration_has_no_peak() -> None:
    assert found(
        LINE,
        " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]",
        " 65536      4159603          0.00               363.52             0.693268",
        LINE,
    ) == [(65536, "algbw", "", 45.44, "per_rank")]


@pytest.mark.parametrize("unit", ["MB/sec", "MiB/sec"])
def test_megabytes_are_binary_under_both_names(unit: str) -> None:
    peak, average = found(
        f" #bytes     #iterations    BW peak[{unit}]    BW average[{unit}]   MsgRate[Mpps]",
        "Conflicting CPU frequency values detected: 1846.55 != 2596.40. CPU Frequency is not max.",
        " 1000       5000             4104.91            4020.54\t\t     4.215846",
    )
    # The message rate says the same.
    assert average[3] == pytest.approx(4.215846e6 * 1000 / 1e9, rel=1e-5)
    assert peak[2] == "peak"
    assert peak[3] == pytest.approx(4104.91 * 1.048576 / 1e3)


def test_service_level_and_ports_have_columns_of_their_own() -> None:
    assert found(
        " #bytes    #sl      #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]"
        "   BW Port1[Gb/sec]   MsgRate Port1[Mpps]    CPU_Util[%]",
        " 65536     3        5000           96.00              88.00                0.19"
        "            44.00              0.09                   12.5",
    ) == [
        (65536, "algbw", "peak", 12.0, "per_rank"),
        (65536, "algbw", "", 11.0, "per_rank"),
    ]


def test_both_directions_together_are_a_variant() -> None:
    head = " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]"
    row = " 65536      5000           40.00              40.00                0.1"
    both = "                    RDMA_Write Bidirectional BW Test"
    one = "                    RDMA_Write BW Test"
    assert [(variant, value) for _, _, variant, value, _ in found(both, head, row)] == [
        ("bidirectional_peak", 5.0),
        ("bidirectional", 5.0),
    ]
    again = found(both, head, row, one, head, row)
    assert [variant for _, _, variant, _, _ in again[2:]] == ["peak", ""]


def test_latency_by_duration() -> None:
    assert found(
        " #bytes        #iterations       t_avg[usec]    tps average",
        " 2             1250000           1.60           312500.00",
    ) == [(2, "latency", "", 1.6, "per_rank")]


def test_latencies() -> None:
    assert found(
        " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]"
        "    t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec] ",
        " 2       1000          1.76           6.12         1.79                1.80"
        "             0.06            1.88                    6.11",
    ) == [
        (2, "latency", variant, value, "per_rank")
        for variant, value in [
            ("min", 1.76),
            ("max", 6.12),
            ("typical", 1.79),
            ("", 1.8),
            ("stdev", 0.06),
            ("p99", 1.88),
            ("p99.9", 6.11),
        ]
    ]


HEAD = b" #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n"


@pytest.mark.parametrize(
    ("row", "damaged"),
    [
        (b" 65536   5000  100.0\n", 1),
        (b" 65536   5000  100.0  100.0  0.1  65536  5000\n", 1),
        (b" 65536   5000  1e999  1e999  0.1\n", 0),
        (b" " + b"9" * 400 + b" 5000 1.0 1.0 1.0\n", 0),
        (b" 65536  Terminated\n", 0),
    ],
)
def test_cut_mixed_and_hostile_rows_state_nothing(row: bytes, damaged: int) -> None:
    census = ParseStats()
    assert parse(HEAD + row, census=census) == []
    assert sum(census.damaged.values()) == damaged
