"""Dumps of torch's flight recorder, as NCCL's watchdog leaves them: who kept the others waiting."""

import os
import pickle
from pathlib import Path
from typing import Any

import pytest

from hpc_train.base.errors import LogParseError
from hpc_train.diagnosis.waits import FlightDump, explain_dumps, read_dump

ALL, PAIR = ("0", "default_pg"), ("7", "mesh_tp")


def entry(number: int, group: tuple[str, str] = ALL, *, op: str = "all_reduce", **keys: Any) -> Any:
    """Return an operation with the keys of version 2.10 that are read; it has ended."""
    return {
        "process_group": group,
        "collective_seq_id": number,
        "profiling_name": f"nccl:{op}",
        "input_sizes": ((64, 2),),
        "state": "completed",
        "retired": True,
        "is_p2p": False,
        "frames": [
            {"name": "all_reduce", "filename": "/venv/torch/distributed/x.py", "line": 3145},
            {"name": "step", "filename": "/home/me/train.py", "line": 42},
        ],
        **keys,
    }


def waiting(number: int, group: tuple[str, str] = ALL, **keys: Any) -> Any:
    return entry(number, group, state="started", retired=False, **keys)


def dumped(folder: Path, *entries: list[Any]) -> list[FlightDump]:
    """Write the dump of each rank; return what is read of them."""
    ranks = str([*range(len(entries))])
    groups = {"0": {"name": "0", "desc": "default_pg", "ranks": ranks}}
    groups |= {"7": {"name": "7", "desc": "mesh_tp", "ranks": "[0, 1]"}}
    paths = [folder / f"nccl_trace_rank_{rank}" for rank in range(len(entries))]
    for path, own in zip(paths, entries, strict=True):
        path.write_bytes(pickle.dumps({"version": "2.10", "pg_config": groups, "entries": own}))
    return [read_dump(path, path.name) for path in paths]


def test_a_rank_that_is_behind(tmp_path: Path) -> None:
    """The others run ahead: NCCL enqueues without waiting."""
    ahead = [entry(1203), waiting(1204), waiting(1205)]
    hang, evidence = explain_dumps(dumped(tmp_path, ahead, ahead, [entry(1203)]), 3)
    assert hang is not None
    assert hang.title == (
        "Ranks 0-1 waited in collective 1204 (ALLREDUCE), and rank 2 did not join: last enqueued "
        "1203"
    )
    assert [one.text for one in evidence] == [
        "flight recorder of rank 0, process group 0: it waited in collective 1204 (all_reduce of "
        "64x2, called at train.py:42)",
        "flight recorder of rank 2, process group 0: its last was collective 1203 (all_reduce of "
        "64x2, called at train.py:42)",
    ]


def test_the_end_of_a_collective_that_a_rank_has_not_noted_yet(tmp_path: Path) -> None:
    ahead = [entry(5), waiting(6)]
    hang, _ = explain_dumps(dumped(tmp_path, ahead, ahead, [entry(4), waiting(5)]), 3)
    assert hang is not None
    assert hang.late == (2,)
    # Without an end on any rank, all of them are in it.
    stuck = [entry(4), waiting(5), waiting(6)]
    hang, _ = explain_dumps(dumped(tmp_path, stuck, stuck, [entry(4), waiting(5)]), 3)
    assert hang is None


def test_a_rank_that_waits_in_another_group_is_a_victim(tmp_path: Path) -> None:
    """Rank 1 never calls what rank 0 waits for in their group; rank 2 waits for both."""
    dumps = dumped(tmp_path, [entry(5), waiting(9, PAIR)], [entry(5)], [entry(5), waiting(6)])
    hang, _ = explain_dumps(dumps, 3)
    assert hang is not None
    assert hang.late == (1,)
    assert hang.title.startswith("Rank 0 waited in collective 9")


def test_another_collective_at_the_same_place(tmp_path: Path) -> None:
    dumps = dumped(tmp_path, [waiting(6)], [waiting(6)], [waiting(6, op="broadcast")])
    hang, _ = explain_dumps(dumps, 3)
    assert hang is not None
    assert (hang.late, "ranks called other collectives" in hang.title) == ((2,), True)


def test_a_rank_without_a_dump(tmp_path: Path) -> None:
    dumps = dumped(tmp_path, [waiting(30)], [waiting(30)], [waiting(30)])
    hang, _ = explain_dumps(dumps[:2], 3)
    assert hang is not None
    assert hang.late == (2,)


def test_all_wait_in_the_same_collective(tmp_path: Path) -> None:
    """The dumps tell of no rank; the lines of the logs have the time at least."""
    assert explain_dumps(dumped(tmp_path, *[[entry(29), waiting(30)]] * 3), 3) == (None, ())
    assert explain_dumps(dumped(tmp_path, *[[entry(29)]] * 3), 3) == (None, ())
    assert explain_dumps([], 3) == (None, ())


def test_point_to_point_operations_have_other_numbers(tmp_path: Path) -> None:
    sends = [entry(5), waiting(6, is_p2p=True)]
    assert explain_dumps(dumped(tmp_path, sends, [entry(5)]), 2) == (None, ())


def test_a_rank_that_waits_for_a_send_or_receive_is_a_victim(tmp_path: Path) -> None:
    """In a pipeline: a stage waits for another one, and so is late in a collective of both."""
    receives = [entry(5), waiting(0, is_p2p=True, op="recv 1<-2")]
    dumps = dumped(tmp_path, [entry(5), waiting(6)], receives, [entry(5)])
    hang, evidence = explain_dumps(dumps, 3)
    assert hang is not None
    assert hang.late == (2,)
    assert hang.title.startswith("Rank 0 waited in collective 6 (ALLREDUCE), and rank 2 did not")
    assert [one.rank for one in evidence] == [0, 2]
    # The rank that it waits for has ended its part, or has left no dump.
    assert explain_dumps(dumps[:2], 3) == (None, ())
    # One that has ended its exchanges is late.
    sent = [entry(5), entry(0, is_p2p=True)]
    hang, _ = explain_dumps(dumped(tmp_path, [entry(5), waiting(6)], sent), 2)
    assert hang is not None
    assert hang.late == (1,)


DAMAGED = "is damaged, or its rank was ended before all of it was written; it is left out"


class Attack:
    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return os.mkdir, ("made-by-a-dump",)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (pickle.dumps(Attack()), "it names posix.mkdir, which is not loaded"),
        (pickle.dumps(Attack(), protocol=0), "it names posix.mkdir, which is not loaded"),
        (b"", DAMAGED),
        (pickle.dumps({"entries": []})[:-4], DAMAGED),
        (pickle.dumps([1]), DAMAGED),
        (b'{"entries": 3}', DAMAGED),
        (b"{", DAMAGED),
    ],
)
def test_another_file_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, text: str
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "nccl_trace_rank_0"
    path.write_bytes(content)
    with pytest.raises(LogParseError, match=text) as failure:
        read_dump(path, "logs/nccl_trace_rank_0")
    assert failure.value.message.startswith("logs/nccl_trace_rank_0: ")
    assert "dump of torch's flight recorder" in failure.value.message
    assert [*tmp_path.iterdir()] == [path]


def test_a_file_of_any_size_is_not_loaded(tmp_path: Path) -> None:
    path = tmp_path / "nccl_trace_rank_0"
    path.touch()
    os.truncate(path, 1 << 40)
    with pytest.raises(LogParseError, match="too large"):
        read_dump(path, path.name)
