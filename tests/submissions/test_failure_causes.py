"""The first line of the diagnosis of failed runs: kept, limited, and read anew if logs change."""

import pickle
from pathlib import Path

import msgspec
import pytest

from hpc_train.diagnosis import diagnose_runs, diagnose_runs as diagnose
from hpc_train.diagnosis.diagnose_runs import FILE, causes, diagnosis_of
from hpc_train.runs.run import Failure, JobState, Run
from hpc_train.runs.run_table import explained, row, rows
from tests.submissions.runs_of import written

CRASH = 'Traceback (most recent call last):\n  File "a.py", line 3, in <module>\n{}\n'
EMPTY = CRASH.format("ValueError: the batch is empty")


def failed(home: Path, run_id: str, log: str, state: str = "FAILED") -> Run:
    run = written(home, run_id, log, exit_code=1)
    return msgspec.structs.replace(run, state=JobState(state), problem="rank 0 on vm: exit code 1")


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the runs whose logs were read."""
    read: list[str] = []
    original = diagnose.diagnosis_of

    def count(run: Run) -> object:
        read.append(run.folder.run_id)
        return original(run)

    monkeypatch.setattr(diagnose, "diagnosis_of", count)
    return read


def test_a_failed_run_is_read_once(tmp_path: Path, counted: list[str]) -> None:
    run, good = failed(tmp_path, "a", EMPTY), written(tmp_path, "b", EMPTY)
    for _ in range(3):
        found = causes([run, good])
        assert list(found) == ["a"]
        assert "the batch is empty" in found["a"]
    assert counted == ["a"]
    assert (run.folder.path / FILE).exists() and not (good.folder.path / FILE).exists()
    said = f"rank 0 on vm: exit code 1; {found['a']}"
    assert explained(run, found) == said == rows([run], (), found)[0][-1]
    assert (row(run, found)["cause"], row(run)["cause"]) == (found["a"], "")


@pytest.mark.parametrize("state", ["CANCELLED", "NODE_FAIL", "PREEMPTED", "LOST", "RUNNING"])
def test_other_states_are_not_diagnosed(tmp_path: Path, counted: list[str], state: str) -> None:
    assert causes([failed(tmp_path, "a", EMPTY, state)]) == {}
    assert counted == []


def test_changed_logs_are_read_again(tmp_path: Path, counted: list[str]) -> None:
    run = failed(tmp_path, "a", EMPTY)
    causes([run])
    (run.folder.logs / "rank-0.out").write_text(CRASH.format("KeyError: 'vocabulary'"))
    assert "KeyError" in causes([run])["a"]
    assert counted == ["a", "a"]


def test_work_is_limited(
    tmp_path: Path, counted: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [failed(tmp_path, name, EMPTY) for name in ("a", "b", "c")]
    assert causes(runs, limit_s=-1.0) == {}
    most = len(EMPTY) + diagnose_runs._OPENED
    monkeypatch.setattr(diagnose_runs, "_LARGEST", most - 1)
    assert causes(runs) == {}
    assert counted == []
    monkeypatch.setattr(diagnose_runs, "_LARGEST", most)
    assert list(causes(runs)) == ["a", "b", "c"]
    # What is kept needs no time.
    assert list(causes(runs, limit_s=-1.0)) == ["a", "b", "c"]


def test_an_exit_code_does_not_stand_alone(tmp_path: Path) -> None:
    run = failed(tmp_path, "a", "loading\ncannot find the vocabulary\x1b[31m\n\n")
    (cause,) = causes([run]).values()
    assert cause.startswith("last line of logs/rank-0.out: cannot find the vocabulary")
    assert "\x1b" not in cause
    long = failed(tmp_path, "b", "x" * 100_000 + "\n")
    (cause,) = causes([long]).values()
    assert len(cause) == 160 and cause.endswith("…")
    assert causes([failed(tmp_path, "c", "")]) == {}


@pytest.mark.parametrize("host", ["host2", "host2.cluster"])
def test_the_last_line_is_that_of_the_host_that_failed_first(tmp_path: Path, host: str) -> None:
    run = written(tmp_path, "a", "", exit_code=3)
    (run.folder.logs / "job.out").write_text('begun\nhpctrain: status {"started": 1}\n')
    for number, text in enumerate(("all is well", "no data")):
        (run.folder.logs / f"node-{number}.out").write_text(f"{text}\n")
    failure = Failure(rank=None, host=host, exit_code=3)
    assert run.status is not None
    status = msgspec.structs.replace(run.status, nodes="host[1-2]", failure=failure)
    found = causes([msgspec.structs.replace(run, status=status)])
    assert found == {"a": "last line of logs/node-1.out: no data"}
    for number in range(2):
        (run.folder.logs / f"node-{number}.out").unlink()
    found = causes([msgspec.structs.replace(run, status=status)])
    assert found == {"a": "last line of logs/job.out: begun"}


TIMEOUT = (
    "[rank0]:[E520 06:31:05.1 ProcessGroupNCCL.cpp:757] [Rank 0] Watchdog caught collective "
    "operation timeout: WorkNCCL(SeqNum=6, OpType=ALLREDUCE, NumelIn=64, NumelOut=64, "
    "Timeout(ms)=600000) ran for 600051 milliseconds before timing out.\n"
)


def test_the_rank_that_did_not_come_is_named_by_the_flight_recorder(tmp_path: Path) -> None:
    run = written(tmp_path, "a", TIMEOUT, exit_code=1)
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
    root = diagnosis_of(msgspec.structs.replace(run, state=JobState.FAILED)).root
    assert root is not None and "rank 2 did not join: last enqueued 5" in root.title
