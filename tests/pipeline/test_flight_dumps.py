"""The dumps of torch's flight recorder in the folder of a run, with the log of its watchdog."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import msgspec
import pytest

from hpc_train.model.run import Run
from hpc_train.model.submission import JobState
from hpc_train.pipeline.diagnose import diagnosis_of
from tests.pipeline.runs_of import written

LOG = (
    "[rank0]:[E520 06:31:05.1 ProcessGroupNCCL.cpp:757] [Rank 0] Watchdog caught collective "
    "operation timeout: WorkNCCL(SeqNum=6, OpType=ALLREDUCE, NumelIn=64, NumelOut=64, "
    "Timeout(ms)=600000) ran for 600051 milliseconds before timing out.\n"
)


def hung(home: Path) -> Run:
    run = written(home, "a", LOG, exit_code=1)
    for rank, last in enumerate((6, 6, 5)):
        operation = {
            "process_group": ("0", "default_pg"),
            "collective_seq_id": last,
            "profiling_name": "nccl:all_reduce",
            "input_sizes": ((64,),),
            "state": "started" if last == 6 else "completed",
            "retired": last == 5,
        }
        groups = {"0": {"desc": "default_pg", "ranks": "[0, 1, 2]"}}
        dump = pickle.dumps({"pg_config": groups, "entries": [operation]})
        (run.folder.logs / f"nccl_trace_rank_{rank}").write_bytes(dump)
    return msgspec.structs.replace(run, state=JobState.FAILED)


def test_the_rank_that_did_not_come_is_named(tmp_path: Path) -> None:
    root = diagnosis_of(hung(tmp_path)).root
    assert root is not None
    assert root.title == (
        "Ranks 0-1 waited in collective 6 (ALLREDUCE), and rank 2 did not come: last enqueued 5"
    )
    assert [one.source for one in root.evidence] == [
        "logs/rank-0.out",
        "logs/nccl_trace_rank_0",
        "logs/nccl_trace_rank_2",
    ]


def test_dumps_of_an_earlier_start_are_left_out(tmp_path: Path) -> None:
    run = hung(tmp_path)
    for rank in range(3):
        os.utime(run.folder.logs / f"nccl_trace_rank_{rank}", (1e8, 1e8))
    check_unknown(run)


def test_a_damaged_dump_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    run = hung(tmp_path)
    (run.folder.logs / "nccl_trace_rank_2").write_bytes(b"\x80")
    check_unknown(run)
    assert "logs/nccl_trace_rank_2: this dump of torch's flight recorder is damaged" in caplog.text


def test_a_dump_that_is_no_file_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    run = hung(tmp_path)
    for rank, make in ((1, lambda path: path.symlink_to("gone")), (2, os.mkfifo)):
        path = run.folder.logs / f"nccl_trace_rank_{rank}"
        path.unlink()
        make(path)
    check_unknown(run)
    assert "logs/nccl_trace_rank_1: it cannot be read: No such file or directory" in caplog.text
    assert "logs/nccl_trace_rank_2: it cannot be read: " in caplog.text


def check_unknown(run: Run) -> None:
    root = diagnosis_of(run).root
    assert root is not None
    assert "did not come" not in root.title
    assert [one.source for one in root.evidence] == ["logs/rank-0.out"]
