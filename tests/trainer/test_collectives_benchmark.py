"""The benchmark as a job runs it: real ranks over gloo, a table that our parser reads."""

import socket

import pytest

from hpc_train.jobs.collectives import COLLECTIVES
from hpc_train.trainer.collectives import parse_options
from tests.logs.parse_text import parse
from tests.trainer.launching import events, finish, meeting_point, start

pytest.importorskip("torch")
MODULE = ("-m", "hpc_train.trainer.collectives")


RANKS = 2
WORKER = "tests/trainer/several_sweeps.py"
# Of three sizes; the last two are too small for a part for each rank.
SWEEPS = [f"{name} -b 1M -e 4M -f 2 -n 3 -w 1" for name in COLLECTIVES]
SMALL = ["allgather -b 8 -e 128 -f 4 -n 2", "alltoall -b 8 -e 16"]


@pytest.fixture(scope="module")
def tables() -> list[str]:
    """Return the output of each sweep, all measured by the same ranks."""
    command = (WORKER, *SWEEPS, *SMALL)
    code, out, err = finish(start(command, **meeting_point(), LOCAL_WORLD_SIZE=RANKS))
    assert (code, err) == (0, "")
    return out.split("next\n")


def rows_of(out: str) -> list[list[str]]:
    return [line.split() for line in out.splitlines() if line.startswith("  ")]


@pytest.mark.parametrize("name", COLLECTIVES)
def test_each_collective_is_measured_and_right(tables: list[str], name: str) -> None:
    out = tables[list(COLLECTIVES).index(name)]
    hits = [hit for _, hit, _ in parse(out.encode(), "nccl_tests")]
    found = {(hit.metric, hit.variant, hit.message_size): hit.value for hit in hits}
    assert found["world_size", "", None] == RANKS
    assert found["wrong_values", "", None] == 0
    sizes = {size for _, _, size in found if size}
    assert sizes == {2**20, 2**21, 2**22}
    for size in sizes:
        for variant in ("out_of_place", "in_place"):
            # Of the time as it is printed, in microseconds.
            algorithm = size / found["latency", variant, size] / 1e3
            bus = algorithm * COLLECTIVES[name].bus_factor(RANKS)
            assert found["algbw", variant, size] == pytest.approx(algorithm, rel=1e-3, abs=6e-3)
            assert found["busbw", variant, size] == pytest.approx(bus, rel=1e-3, abs=6e-3)
    due = ["0", "0" if COLLECTIVES[name].in_place else "N/A"]
    assert [row[8::4] for row in rows_of(out)] == [due] * 3


def test_sizes_without_a_part_for_each_rank_are_left_out(tables: list[str]) -> None:
    some, none = tables[-2:]
    assert f"# left out, as each of {RANKS} ranks needs 16 B: 8 B" in some.splitlines()
    assert [row[0] for row in rows_of(some)] == ["32", "128"]
    assert none == "--largest 16: alltoall of float on 2 ranks needs at least 32 B\n"


def test_ranks_of_another_launcher_print_one_table() -> None:
    common = {**meeting_point(), "WORLD_SIZE": 2, "LOCAL_WORLD_SIZE": 2}
    command = (*MODULE, "broadcast", "-b", "8", "-e", "64", "-f", "8", "-r", "1", "-n", "2")
    ranks = [start(command, **common, RANK=rank, LOCAL_RANK=rank) for rank in (0, 1)]
    (code, out, err), other = (finish(rank) for rank in ranks)
    assert (code, err, other) == (0, "", (0, "", ""))
    (event,) = events(out, "conditions")
    assert event["conditions"]["benchmark"] == "broadcast_perf"
    assert event["conditions"]["backend"] == "gloo"
    assert f"on {socket.gethostname():>10} device  0 [0x00] CPU" in out
    rows = [row.split()[:5] for row in out.splitlines() if row.startswith("  ")]
    assert rows == [["8", "2", "float", "none", "1"], ["64", "16", "float", "none", "1"]]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("allreduce", "-b", "x"), "'x' is not a message size; examples: 8, 64K, 16M, 1G"),
        (("allreduce", "-e", "8"), "--smallest is 1024 B, more than --largest, 8 B"),
        (("all", "-e", "8"), "'all' is not a collective; known: allreduce, allgather"),
        (("allreduce", "-n", "0"), "'0' is not a whole number of at least 1"),
        (("allreduce", "-d", "fp8"), "'fp8'"),
    ],
)
def test_what_is_wrong_is_one_line_and_code_2(
    arguments: tuple[str, ...], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        parse_options(arguments)
    out, err = capsys.readouterr()
    assert (stop.value.code, out, err.count("\n")) == (2, "", 1)
    assert words in err


def test_a_rank_alone_is_refused() -> None:
    code, out, err = finish(start((*MODULE, "allreduce")))
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "allreduce needs at least 2 ranks, and RANK and WORLD_SIZE describe one" in err


def test_a_root_that_is_no_rank_is_refused_before_ranks_start() -> None:
    command = (*MODULE, "broadcast", "--root", "2")
    code, out, err = finish(start(command, **meeting_point(), LOCAL_WORLD_SIZE=2))
    assert (code, out) == (2, "")
    assert err.endswith("error: --root 2: the ranks are 0 to 1\n")
