"""Who kept the others waiting, by what the watchdogs of all ranks say."""

from hpc_train.diagnosis.waits import CollectiveReader, Hang, Progress, Wait, explain_hang
from hpc_train.logs.line import Line

WAIT = (
    "[rank{rank}]:[E520 06:31:05.050097785 ProcessGroupNCCL.cpp:757] [Rank {rank}] Watchdog caught "
    "collective operation timeout: WorkNCCL(SeqNum={number}, OpType={op}, NumelIn={size}, "
    "NumelOut={size}, Timeout(ms)=600000) ran for 600051 milliseconds before timing out."
)
STATUS = (
    "[rank{rank}]:[E520 06:31:05.1 ProcessGroupNCCL.cpp:1785] [PG ID {group} PG GUID {group} Rank "
    "{rank}] Exception (either an error or timeout) detected by watchdog at work: {stuck}, last "
    "enqueued NCCL work: {enqueued}, last completed NCCL work: {completed}."
)
DUMP = (
    "[rank{rank}]:[E129 16:38:47.8 ProcessGroupNCCL.cpp:1858] [PG ID 0 PG GUID 0(default_pg) Rank "
    "{rank}] Received a dump signal due to a collective timeout from rank 0 and we will try our "
    "best to dump the debug info. Last enqueued NCCL work: {enqueued}, last completed NCCL work: "
    "{completed}.This is most likely caused by incorrect usages of collectives"
)


def wait(rank: int, number: int = 500, op: str = "ALLREDUCE", size: int = 64) -> str:
    return WAIT.format(rank=rank, number=number, op=op, size=size)


def status(rank: int, enqueued: int, completed: int, stuck: int = 500, group: str = "0") -> str:
    return STATUS.format(
        rank=rank, enqueued=enqueued, completed=completed, stuck=stuck, group=group
    )


def read(*lines: str) -> tuple[list[Wait], list[Progress]]:
    reader = CollectiveReader()
    found = [
        said
        for number, text in enumerate(lines, 1)
        for said in reader.read(Line(text.encode(), number))
    ]
    waits = [one for one in found if isinstance(one, Wait)]
    return waits, [one for one in found if isinstance(one, Progress)]


def explain(*lines: str, ranks: int | None) -> Hang:
    hang = explain_hang(*read(*lines), ranks)
    assert hang is not None
    return hang


def test_the_group_of_a_wait_is_the_one_that_is_stuck_in_it() -> None:
    of_all = [status(rank, 900, 899, stuck=899) for rank in (0, 1)]
    hang = explain(
        wait(0), of_all[0], status(0, 500, 499, group="5"), of_all[1],
        status(1, 498, 498, stuck=498, group="5"), ranks=2,
    )  # fmt: skip
    assert hang.late == (1,)


def test_versions_of_the_lines() -> None:
    old = (
        "[E ProcessGroupNCCL.cpp:828] [Rank 1] Watchdog caught collective operation timeout: "
        "WorkNCCL(SeqNum=15173, OpType=ALLREDUCE, Timeout(ms)=1800000) ran for 1802710 milliseconds"
    )
    oldest = (
        "[E ProcessGroupNCCL.cpp:566] [Rank 1] Watchdog caught collective operation timeout: "
        "WorkNCCL(OpType=ALLREDUCE, TensorShape=[1], Timeout(ms)=1800000) ran for 1801609 "
        "milliseconds"
    )
    new = (
        "(Worker pid=7) [rank3]:[E219 08:58:32.6 ProcessGroupNCCL.cpp:2396] [PG ID 2 PG GUID "
        "3(tp) Rank 0]  failure detected by watchdog at work sequence id: 31 PG status: last "
        "enqueued work: 58, last started work: -1 (), last completed work: 30"
    )
    older_status = (
        "[rank1]:[E1003 18:37:01.8 ProcessGroupNCCL.cpp:1664] [PG 0 (default_pg) Rank 1] Exception "
        "(either an error or timeout) detected by watchdog at work: 8, last enqueued NCCL work: 9, "
        "last completed NCCL work: 7."
    )
    waits, progress = read(old, oldest, new, older_status)
    assert [(one.rank, one.number, one.ran_s) for one in waits] == [
        (1, 15173, 1802.71),
        (1, None, 1801.609),
    ]
    (one, older) = progress
    assert (older.rank, older.group, older.enqueued) == (1, "0", 9)
    # The rank in brackets counts within the group.
    assert (one.rank, one.group, one.enqueued, one.completed, one.stuck) == (3, "3", 58, 30, 31)


def test_rank_that_had_not_enqueued_is_late() -> None:
    lines = [wait(rank, 78) for rank in (1, 2, 3)]
    lines += [status(rank, 79, 77, 78) for rank in (1, 2, 3)]
    hang = explain(*lines, DUMP.format(rank=0, enqueued=77, completed=77), ranks=4)
    assert hang.late == (0,)
    assert hang.title == (
        "Ranks 1-3 waited 600 s in collective 78 (ALLREDUCE), and rank 0 did not join: "
        "last enqueued 77"
    )


def test_rank_that_had_enqueued_it_has_come() -> None:
    lines = [wait(rank, 78) for rank in (1, 2, 3)]
    lines += [status(rank, 79, 77, 78) for rank in (1, 2, 3)]
    hang = explain(*lines, DUMP.format(rank=0, enqueued=78, completed=77), ranks=4)
    assert (hang.late, "did not join" in hang.title) == ((), False)


def test_of_two_halves_the_one_that_is_behind_is_named_and_a_majority_is_not() -> None:
    half = explain(wait(0, 640), wait(1, 640), wait(2, 961), wait(3, 962), ranks=4)
    assert half.late == (0, 1)
    assert half.title.startswith("Ranks 0-1 stopped in collective 640 (ALLREDUCE), ranks 2-3 were")
    most = explain(wait(0, 640), wait(1, 640), wait(2, 961), ranks=3)
    assert "stopped in" not in most.title


def test_other_numbers_in_other_groups_say_nothing() -> None:
    lines = [wait(0, 9), status(0, 9, 8, 9, group="0"), wait(1, 7), status(1, 7, 6, 7, group="4")]
    assert explain(*lines, ranks=2).late == ()


def test_progress_of_another_group_says_nothing() -> None:
    lines = [wait(0), wait(1), status(0, 500, 499), status(1, 500, 499)]
    hang = explain(*lines, status(1, 3, 3, 3, group="7"), ranks=2)
    assert hang.late == ()


def test_silent_rank_is_named_where_most_complain() -> None:
    lines = [wait(rank) for rank in (0, 1, 2, 4, 5, 6, 7)]
    hang = explain(*lines, ranks=8)
    assert hang.late == (3,)
    assert "rank 3 reported no timeout" in hang.title


def test_silence_outside_the_group_of_all_ranks_says_nothing() -> None:
    lines = [wait(rank) for rank in (0, 1, 2)] + [
        status(rank, 500, 499, group="9") for rank in (0, 1)
    ]
    assert explain(*lines, ranks=4).late == ()


def test_no_rank_is_accused_when_most_logs_are_missing() -> None:
    hang = explain(wait(0, 3, "_ALLGATHER_BASE"), status(0, 3, 2, 3), ranks=8)
    assert hang.late == ()
    assert "one of the first of the job" in hang.title
    assert "only 1 of 8 ranks is in these logs" in hang.cause


def test_other_collectives_at_the_same_place() -> None:
    hang = explain(wait(0), wait(1), wait(2, op="BROADCAST"), ranks=3)
    assert hang.late == (2,)
    assert "Ranks 0-1: ALLREDUCE; Rank 2: BROADCAST" in hang.title


def test_other_sizes_at_the_same_place() -> None:
    hang = explain(wait(0), wait(1), wait(2, size=65), ranks=3)
    assert hang.late == (2,)
    assert "other sizes" in hang.title


def test_all_ranks_at_the_start_is_the_transport() -> None:
    hang = explain(wait(0, 1), wait(1, 1), status(0, 1, -1, 1), status(1, 1, -1, 1), ranks=2)
    assert "cannot reach one another" in hang.title
    assert "transport" in hang.cause


def test_the_first_twenty_collectives_are_the_start_of_a_job() -> None:
    def at(number: int, *lines: str) -> bool:
        hang = explain(wait(0, number), wait(1, number), *lines, ranks=2)
        assert hang.cause.startswith("all ranks wait in the same collective; ")
        return "one of the first of the job" in hang.title

    assert at(20)
    assert not at(21)
    assert at(20, status(0, 20, 20, 20), status(1, 20, 5, 20))
    assert not at(20, status(0, 21, 21, 20), status(1, 20, 5, 20))


def test_as_many_silent_ranks_as_heard_ones_are_not_named() -> None:
    assert explain(*(wait(rank) for rank in (0, 1)), ranks=3).late == (2,)
    told = "Ranks 0-1 waited 600 s in collective 500 (ALLREDUCE), long after the start"
    hang = explain(wait(0), wait(1), ranks=4)
    assert (hang.title, hang.late) == (told, ())
    assert hang.cause.startswith("only 2 of 4 ranks are in these logs")


def test_what_a_rank_enqueued_last_counts_in_whatever_order_it_is_told() -> None:
    waited = [wait(rank) for rank in (0, 1)]
    told = [status(2, 480, 470), status(2, 505, 499), status(2, 490, 480)]
    assert explain(*waited, *told, ranks=None).late == ()
    assert explain(*waited, *told[::2], ranks=None).late == (2,)


def test_of_several_ranks_that_went_on_the_one_at_the_earliest_place_is_told() -> None:
    hang = explain(wait(0, 640), wait(1, 970), wait(2, 961), ranks=3)
    assert hang.title.endswith("ranks 1-2 were at 961 or later")
    assert explain(wait(0, 640), wait(1, 970), ranks=2).title.endswith("was at 970 or later")
