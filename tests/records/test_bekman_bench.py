"""The benchmarks of *Machine Learning Engineering*: lines of each rank, means, tables."""

from __future__ import annotations

import pytest

from tests.records.parse_text import parse

GIB = 2**30


def found(text: str) -> list[tuple[int | None, str, str, float, str]]:
    return [
        (hit.message_size, hit.metric, hit.variant, hit.value, hit.scope)
        for _, hit, _ in parse(text.encode())
    ]


def test_lines_of_the_ranks_may_mix() -> None:
    text = """\
1 data size: 4.0 GB
0:
1:
 duration: 1.0000 sec
 duration: 1.0000 sec
 algo throughput: 64000000000.0000 bps, 64.0000 Gbps
ignore me 6
 busbw: 48.0000  Gbps
 algo throughput: 32.0000 Gbps
 busbw: 24.0000  Gbps
"""
    assert found(text) == [
        (4 * 10**9, "algbw", "both_ways", 8.0, "per_rank"),
        (4 * 10**9, "busbw", "", 6.0, "per_rank"),
        (4 * 10**9, "algbw", "both_ways", 4.0, "per_rank"),
        (4 * 10**9, "busbw", "", 3.0, "per_rank"),
    ]


def test_mean_of_all_ranks() -> None:
    text = """\
The average bandwidth of all_reduce with a 4.0GB payload (5 trials, 16 ranks):
[node01:0]: algbw: 176.590 GBps (1412.7 Gbps)
 busbw: 331.106 GBps (2648.8 Gbps)
"""
    assert found(text) == [
        (None, "world_size", "", 16.0, "global"),
        (4 * 10**9, "algbw", "", 176.59, "global"),
        (4 * 10**9, "busbw", "", 331.106, "global"),
    ]


def test_table_by_payload() -> None:
    text = """\
The average bandwidth and the per-call latency of all_gather over 8 ranks (5 warmups / 20 trials):

| payload |    busbw   |    algbw   | latency median |    p99    |    mean   | calls |
| ------: | ---------: | ---------: | -------------: | --------: | --------: | ----: |
|      8B |            |            |         11.5us |    20.5us |    12.5us |  1000 |
|  1.5GiB | 300.25GBps | 171.57GBps |       9387.0us |  9400.0us |  9390.0us |    20 |
"""
    assert found(text) == [
        (None, "world_size", "", 8.0, "global"),
        (8, "latency", "median", 11.5, "global"),
        (8, "latency", "p99", 20.5, "global"),
        (8, "latency", "mean", 12.5, "global"),
        (3 * GIB // 2, "busbw", "", 300.25, "global"),
        (3 * GIB // 2, "algbw", "", 171.57, "global"),
        (3 * GIB // 2, "latency", "median", 9387.0, "global"),
        (3 * GIB // 2, "latency", "p99", 9400.0, "global"),
        (3 * GIB // 2, "latency", "mean", 9390.0, "global"),
    ]


@pytest.mark.parametrize(
    ("payload", "size"),
    [("512B", 512), ("32KiB", 2**15), ("0.5MiB", 2**19), ("64MiB", 2**26), ("2TiB", 2**41)],
)
def test_payloads_are_powers_of_two(payload: str, size: int) -> None:
    text = (
        "The average bandwidth and the per-call latency of all_reduce over 8 ranks (5 warmups):\n"
        "| payload |    busbw   |\n| ------: | ---------: |\n"
        f"|  {payload} |   1.20GBps |\n"
    )
    assert found(text)[1:] == [(size, "busbw", "", 1.2, "global")]


def test_table_of_many_collectives() -> None:
    text = """\
The average bandwidth and the per-call latency of 2 collectives over 8 ranks (5 warmups):
| payload | all_reduce busbw | all_reduce median | all_to_all busbw | all_to_all median |
| ------: | ---------------: | ----------------: | ---------------: | ----------------: |
|   32KiB |             1.20 |              27.3 |                  |              31.4 |
"""
    assert found(text)[1:] == [
        (32768, "busbw", "all_reduce", 1.2, "global"),
        (32768, "latency", "all_reduce", 27.3, "global"),
        (32768, "latency", "all_to_all", 31.4, "global"),
    ]


def test_table_of_single_trials() -> None:
    text = """\
The 4.0GiB payload bandwidth of all_reduce over 8 ranks (5 warmups / 20 trials):
|    busbw   |    algbw   |
| ---------: | ---------: |
| 480.70GBps | 274.69GBps |
"""
    assert found(text)[1:] == [
        (4 * GIB, "busbw", "", 480.7, "global"),
        (4 * GIB, "algbw", "", 274.69, "global"),
    ]


def test_new_title_ends_the_table() -> None:
    title = "The 4.0GiB payload bandwidth of all_reduce over 8 ranks (20 trials):\n"
    row = "| 480.70GBps | 274.69GBps |\n"
    names = "|    busbw   |    algbw   |\n"
    assert len(found(title + names + row + title + row)) == 4


@pytest.mark.parametrize(
    "text",
    [
        " busbw: 24.0",
        "busbw: 24.0000 GBps",
        "the busbw: 24",
        " algo throughput: 3 plans/s",
        "dataset data size: 4 GBytes",
        "|    busbw   |    algbw   |\n| 480.70GBps | 274.69GBps |",
        "| payload |    busbw   |\n|   32KiB |",
        "| payload |    busbw   |\n| " + "9" * 400 + "KiB | 1.0GBps |",
        " busbw: " + "9" * 400 + "  Gbps",
    ],
)
def test_cut_foreign_and_hostile_lines_state_nothing(text: str) -> None:
    assert found(text) == []
