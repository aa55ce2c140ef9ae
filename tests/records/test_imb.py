"""Tables of the Intel MPI Benchmarks: columns, megabytes of both kinds, damage."""

from __future__ import annotations

import pytest

from hpc_train.records.parse_stats import ParseStats
from tests.records.parse_text import parse

SENDRECV = """\
# Benchmarking Sendrecv
# #processes = 2
       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]   Mbytes/sec
            1         1000         4.22         4.22         4.22         0.45
          128         1000         5.17         5.17         5.17        47.18
"""
ALLREDUCE = """\
# Benchmarking Allreduce
# #processes = 144
#----------------------------------------------------------------
       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]
            0         1000         0.03         0.04         0.03
    268435456            1    307115.36    326712.51    319229.75


# All processes entering MPI_Finalize
"""
Found = list[tuple[object, ...]]


def found(text: str, *names: str) -> Found:
    return [
        (hit.metric, hit.value, hit.message_size, hit.variant)
        for _, hit, _ in parse(text.encode(), *names)
    ]


def test_collective() -> None:
    assert found(ALLREDUCE) == [
        ("world_size", 144.0, None, "Allreduce"),
        ("latency", 0.03, 0, ""),
        ("latency", 0.03, 0, "min"),
        ("latency", 0.04, 0, "max"),
        ("latency", 319229.75, 268435456, ""),
        ("latency", 307115.36, 268435456, "min"),
        ("latency", 326712.51, 268435456, "max"),
    ]


def rates(text: str) -> Found:
    return [(value, size, variant) for name, value, size, variant in found(text) if name == "algbw"]


def test_megabytes_of_old_versions_are_binary() -> None:
    # 2 * 128 B in 5.17 us are 49.5e6 B/s; of 0.45 nothing can be told.
    assert rates(SENDRECV) == [(47.18 * 2**20 / 1e9, 128, "bidirectional")]


def test_megabytes_of_new_versions_are_decimal() -> None:
    text = """\
# Benchmarking PingPong
       #bytes #repetitions      t[usec]   Mbytes/sec
            0         1000         1.25         0.00
      4194304           10       400.00     10485.76
"""
    assert rates(text) == [(pytest.approx(10.48576), 4194304, "")]


def test_the_slowest_process_makes_the_rate() -> None:
    text = """\
# Benchmarking Sendrecv
       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]   Mbytes/sec
      4194304           10       360.00       400.00       385.00     20971.52
"""
    assert rates(text) == [(pytest.approx(20.97152), 4194304, "bidirectional")]


def test_rate_that_fits_no_megabyte_is_left_out() -> None:
    text = SENDRECV.replace("47.18", "30.18")
    assert not rates(text)
    assert len(found(text)) == 7


def test_overlap_of_nonblocking_collectives() -> None:
    text = """\
# Benchmarking Ibcast
       #bytes #repetitions t_ovrl[usec] t_pure[usec]  t_CPU[usec]   overlap[%]
         1024         1000        30.50        16.25        15.75        95.24
"""
    assert found(text) == [("latency", 30.5, 1024, "overall"), ("latency", 16.25, 1024, "pure")]


def test_barrier_has_no_size() -> None:
    text = """\
# Benchmarking Barrier
 #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]
         1000         2.50         2.75         2.60
"""
    assert ("latency", 2.6, None, "") in found(text)


def test_rows_of_labelled_and_interleaved_output() -> None:
    text = "".join(f"0: {line}\n" for line in ALLREDUCE.splitlines())
    assert found(text) == found(ALLREDUCE)
    cut = ALLREDUCE.replace("326712.51    319229.75", "3267NCCL INFO 12.51    319229.75")
    census = ParseStats()
    assert len(parse(cut.encode(), census=census)) == 4
    assert census.damaged == {"log": 1}


@pytest.mark.parametrize("text", [SENDRECV, ALLREDUCE])
def test_tables_of_perftest_have_other_columns(text: str) -> None:
    assert not found(text, "perftest")
    assert not found(text, "osu")
