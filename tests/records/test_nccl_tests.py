"""Tables of nccl-tests and rccl-tests: versions, placements, NCCL amid a row, processes apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.records.parse_stats import ParseStats
from tests.records.parse_text import parse, values

LOGS = Path("tests/logs/nccl_tests")
NAMES = "#       size         count      type   redop    root     time   algbw   busbw #wrong"
HEAD = (NAMES + "     time   algbw   busbw #wrong\n").encode()
ROW = b"  1048576  262144  float  sum  -1  100.0  10.49  18.35  0  200.0  5.24  9.18  0\n"
FOOT = b"# Out of bounds values : 0 OK\n"
Row = tuple[int | None, str, str, float]


def rows(text: bytes) -> list[Row]:
    return [
        (hit.message_size, hit.metric, hit.variant, hit.value)
        for _, hit, _ in parse(text)
        if hit.message_size is not None
    ]


def of(name: str) -> bytes:
    return (LOGS / name).read_bytes()


def worlds(text: bytes, rank: int | None = None) -> list[tuple[float, str]]:
    found = parse(text, rank=rank)
    return [(hit.value, hit.variant) for _, hit, _ in found if hit.metric == "world_size"]


def test_row_states_both_placements() -> None:
    assert rows(HEAD + ROW) == [
        (1048576, "latency", "out_of_place", 100.0),
        (1048576, "algbw", "out_of_place", 10.49),
        (1048576, "busbw", "out_of_place", 18.35),
        (1048576, "latency", "in_place", 200.0),
        (1048576, "algbw", "in_place", 5.24),
        (1048576, "busbw", "in_place", 9.18),
    ]


def test_rows_that_nccl_wrote_into_are_put_together() -> None:
    census = ParseStats()
    found = parse(of("interrupted.out"), census=census)
    assert [
        (line, hit.message_size, hit.variant, hit.value)
        for line, hit, _ in found
        if hit.metric == "busbw"
    ] == [
        (18, 1048576, "out_of_place", 15.12),
        (18, 1048576, "in_place", 14.98),
        (19, 2097152, "out_of_place", 20.97),
        (19, 2097152, "in_place", 20.97),
        (20, 4194304, "out_of_place", 25.17),
        (20, 4194304, "in_place", 25.17),
        (23, None, "average", 24.12),
    ]
    assert worlds(of("interrupted.out")) == [(4.0, "")]


def test_old_rooted_operation_with_values_that_are_none() -> None:
    text = of("old_reduce.out")
    assert [row for row in rows(text) if row[1] == "busbw"] == [
        (1024, "busbw", "out_of_place", 0.05),
        (1024, "busbw", "in_place", 0.05),
        (2048, "busbw", "out_of_place", 0.10),
    ]
    assert worlds(text) == [(2.0, "")]


def test_report_by_iteration_groups_and_timestamps() -> None:
    text = of("by_iteration.out")
    assert [row[1:] for row in rows(text) if row[2].startswith("in_place")] == [
        ("latency", "in_place", 51.0),
        ("algbw", "in_place", 20.56),
        ("busbw", "in_place", 10.28),
        ("latency", "in_place_min", 49.0),
        ("latency", "in_place_max", 62.0),
        ("latency", "in_place_p99", 61.5),
    ]
    # Two ranks of each group talk to each other.
    assert worlds(text) == [(2.0, "")]
    assert values(text, "wrong_values") == [3.0]


@pytest.mark.parametrize(
    ("names", "row"),
    [
        (
            "#  size  count  type  time  algbw  busbw  error  time  algbw  busbw  error",
            " 64  16  float  8.10  0.01  0.02  0e+00  8.20  0.03  0.04  0e+00",
        ),
        # All-to-all before 2.13: the operation is blank.
        (
            "#  size  count  type  redop  time  algbw  busbw  error  time  algbw  busbw  error",
            " 64  16  float        8.10  0.01  0.02  0e+00  8.20  0.03  0.04  0e+00",
        ),
        (
            "#  size  count  type  redop  root  time algbw busbw #wrong  time algbw busbw #wrong",
            " 64  16  float        -1  8.10  0.01  0.02  0  8.20  0.03  0.04  0",
        ),
        (
            "# bytes  N  type  op  time  algbw  busbw  res  time  algbw  busbw  res",
            " 64  16  float  sum  8.10  0.01  0.02  0e+00  8.20  0.03  0.04  0e+00",
        ),
    ],
)
def test_columns_go_by_their_names(names: str, row: str) -> None:
    found = rows(f"{names}\n{row}\n".encode())
    assert [value for *_, value in found] == [8.10, 0.01, 0.02, 8.20, 0.03, 0.04]


@pytest.mark.parametrize("prefix", [b"", b" 0: ", b"[1,0]<stdout>:", b"(head, rank=0, pid=3) "])
def test_prefixes(prefix: bytes) -> None:
    assert values(prefix + HEAD + prefix + ROW, "busbw") == [18.35, 9.18]


@pytest.mark.parametrize("words", range(4, 13))
def test_cut_row_states_nothing(words: int) -> None:
    census = ParseStats()
    cut = b" ".join(ROW.split()[:words]) + b"\n"
    assert not [one for one in parse(HEAD + cut, census=census) if one[1].metric == "busbw"]
    assert sum(census.damaged.values()) == 1


def test_words_like_a_row_amid_a_line_are_not_damage() -> None:
    census = ParseStats()
    parse(HEAD + b"node01 has 8 2 float units\n", census=census)
    assert sum(census.damaged.values()) == 0


def test_numbers_after_the_foot_are_no_rows() -> None:
    assert values(HEAD + ROW + FOOT + ROW, "busbw") == [18.35, 9.18]


def test_table_ends_after_fifty_other_lines_but_nccl_may_talk() -> None:
    talk = b"node01:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P\n"
    assert len(values(HEAD + talk * 500 + ROW, "busbw")) == 2
    assert len(values(HEAD + b"other\n" * 50 + ROW, "busbw")) == 2
    assert values(HEAD + b"other\n" * 51 + ROW, "busbw") == []
    assert len(values(HEAD + (b"other\n" * 30 + ROW) * 3, "busbw")) == 6


def test_average_is_a_variant_of_its_own() -> None:
    (found,) = parse(b"# Avg bus bandwidth    : 52.9753 \n")
    assert (found[1].metric, found[1].variant, found[1].value) == ("busbw", "average", 52.9753)
    assert parse(b"# Avg bus bandwidth    : nan\n") == []
    assert parse(b"see the Avg bus bandwidth below\n") == []


def test_processes_that_did_not_meet_are_apart() -> None:
    assert worlds(of("apart.out")) == [(1.0, "apart")]
    alone = b"#  Rank  0 Group  0 Pid   7001 on  node01 device  0 [0000:1b:00] GPU\n" + HEAD + ROW
    assert worlds(alone) == [(1.0, "")]
    # Only process 0 of a test prints.
    assert worlds(alone, rank=3) == [(1.0, "apart")]
    second = alone.replace(b"7001", b"7002")
    assert worlds(alone + second) == [(1.0, ""), (1.0, "apart")]
    assert worlds(alone + FOOT + second) == [(1.0, ""), (1.0, "")]


def test_table_that_lost_its_hashes() -> None:
    lost = (
        b"   Rank  0 Pid   7001 on  node01 device  0 [0x1b] GPU model\n"
        b"   Rank  1 Pid   7002 on  node01 device  1 [0x3d] GPU model\n"
        + HEAD.replace(b"#  ", b"   ")
        + ROW
        + b" Out of bounds values : 0 OK\n Avg bus bandwidth    : 12.5\n"
    )
    found = {(hit.metric, hit.variant): hit.value for _, hit, _ in parse(lost)}
    assert found["world_size", ""] == 2.0
    assert found["wrong_values", ""] == 0.0
    assert found["busbw", "average"] == 12.5


def test_tables_of_labelled_processes_do_not_mix() -> None:
    both = b"".join(
        b"%d: %s" % (rank, line)
        for rank, line in ((0, HEAD), (1, HEAD), (0, ROW), (0, FOOT), (1, ROW), (1, FOOT))
    )
    found = [who for _, hit, who in parse(both) if hit.metric == "busbw"]
    assert found == [0, 0, 1, 1]


@pytest.mark.parametrize(
    "row",
    [
        b"9" * 400 + b" 1 float sum -1 1 1 1 0 1 1 1 0\n",
        b"8 2 float sum -1 " + b"1e999 " * 8 + b"\n",
        b"8 2 float sum -1 " + b"9" * 400 + b" 1 1 0 1 1 1 0\n",
        b"\xff\x00 8 2 float\n",
        # Cut, with the operation left blank: fewer words than there are values.
        b"8 2 float -1 100.0 10.49\n",
        b"8 " * 40_000 + b"\n",
    ],
)
def test_hostile_rows_state_nothing(row: bytes) -> None:
    assert parse(HEAD + row) == []
