"""Who failed first, when, and what it said last."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hpc_train.cli.follow_runs import log_tail
from hpc_train.model.plan import LaunchPlan
from hpc_train.model.run import JobStatus, Run, RunFolder
from hpc_train.model.submission import JobState
from hpc_train.runs.run_folders import read_run

Plans = Callable[..., LaunchPlan]
Execute = Callable[..., subprocess.CompletedProcess[str]]
# Rank 1 fails; the others, told to end, say much and fail as well.
FAIL = """\
trap 'for i in {1..50}; do echo "rank $RANK was told"; done; exit 9' TERM
for i in {1..30}; do echo "rank $RANK line $i"; done
if [ "$RANK" = 1 ]; then sleep 0.3; exit 3; fi
for i in {1..200}; do sleep 0.1; done
"""


def slurm(plan: Plans, code: str, tasks: int = 3, launcher: str = "srun") -> LaunchPlan:
    resources = {"tasks_per_node": tasks, "cpus_per_task": 1, "time": "5m"}
    return plan(
        "slurm-generic", launcher=launcher, command=["bash", "-c", code], resources=resources
    )


def status(folder: Path) -> JobStatus:
    found = read_run(RunFolder(path=folder)).status
    assert found is not None
    return found


def run_in(folder: Path) -> Run:
    return Run(
        folder=RunFolder(path=folder),
        manifest=None,
        submission=None,
        status=status(folder),
        state=JobState.FAILED,
    )


def test_the_first_rank_that_failed_with_its_time_and_last_lines(
    plan: Plans, execute: Execute, tmp_path: Path
) -> None:
    before = time.time()
    done = execute(slurm(plan, FAIL), tmp_path)
    assert done.returncode != 0
    failure = status(tmp_path).failure
    assert failure is not None
    assert (failure.rank, failure.host, failure.exit_code) == (1, "node1", 3)
    assert failure.time is not None
    assert before - 1 <= failure.time <= time.time() + 1
    kept = (tmp_path / "first_failure.log").read_text().splitlines()
    assert kept == [f"rank 1 line {i}" for i in range(11, 31)]
    words = [f"rank-1.out: rank 1 line {i}" for i in range(23, 31)]
    assert log_tail(run_in(tmp_path)) == words


def test_several_that_fail_at_once(plan: Plans, execute: Execute, tmp_path: Path) -> None:
    """The launcher ends the first one, too, as soon as another has left."""
    execute(slurm(plan, "echo from rank $RANK; exit 4", tasks=8), tmp_path)
    failure = status(tmp_path).failure
    assert failure is not None
    assert (tmp_path / "first_failure.log").read_text() == f"from rank {failure.rank}\n"


@pytest.mark.mpi
def test_mpirun_tells_the_others_to_end(plan: Plans, execute: Execute, tmp_path: Path) -> None:
    resources = {"tasks_per_node": 3, "cpus_per_task": 1}
    job = plan(launcher="mpirun", command=["bash", "-c", FAIL], resources=resources)
    execute(job, tmp_path)
    failure = status(tmp_path).failure
    assert failure is not None
    assert (failure.rank, failure.exit_code) == (1, 3)
    kept = (tmp_path / "first_failure.log").read_text().splitlines()
    assert kept == [f"rank 1 line {i}" for i in range(11, 31)]


def test_an_earlier_attempt_leaves_nothing(plan: Plans, execute: Execute, tmp_path: Path) -> None:
    execute(slurm(plan, "echo oh; exit 4"), tmp_path)
    assert (tmp_path / "first_failure.log").exists()
    execute(slurm(plan, "exit 0"), tmp_path, SLURM_RESTART_COUNT="1")
    assert not (tmp_path / "first_failure.log").exists()
    assert status(tmp_path).failure is None


def test_without_the_kept_lines_the_log_itself_is_read(tmp_path: Path) -> None:
    failure = {"rank": 2, "host": "h", "exit_code": 1}
    (tmp_path / "status.json").write_text(json.dumps({"started": 1.0, "failure": failure}))
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "rank-2.out").write_text("a\nb\n")
    assert log_tail(run_in(tmp_path)) == ["rank-2.out: a", "rank-2.out: b"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("launcher", ["srun", "spawn"])
def test_who_was_told_to_end_is_not_guilty(
    plan: Plans, execute: Execute, tmp_path: Path, number: signal.Signals, launcher: str
) -> None:
    """As with scancel: the signal goes to every process of the steps."""
    code = f"echo up; kill -s {number.name[3:]} $PPID $$; sleep 20"
    done = execute(slurm(plan, code, tasks=1, launcher=launcher), tmp_path)
    assert done.returncode == 128 + number
    assert (status(tmp_path).exit_code, status(tmp_path).failure) == (128 + number, None)


def test_a_rank_that_a_signal_of_its_own_ended_is_guilty(
    plan: Plans, execute: Execute, tmp_path: Path
) -> None:
    execute(slurm(plan, "kill -s KILL $$", tasks=1), tmp_path)
    failure = status(tmp_path).failure
    assert failure is not None
    assert failure.exit_code == 137


def test_a_warning_signal_does_not_end_the_wrapper(
    plan: Plans, execute: Execute, tmp_path: Path
) -> None:
    """With --signal=USR1@60 Slurm warns every process; the program writes its checkpoint."""
    code = "trap 'echo saved; exit 0' USR1; kill -s USR1 $PPID $$; sleep 20"
    done = execute(slurm(plan, code, tasks=1), tmp_path)
    assert done.returncode == 0
    assert (tmp_path / "logs" / "rank-0.out").read_text() == "saved\n"


# Two attempts of two ranks. The second rank fails at once, and the first one comes later.
AGENT = """\
#!/bin/bash
while [ "$1" != --no-python ]; do shift; done
shift
export WORLD_SIZE=2 MASTER_ADDR=localhost
for TORCHELASTIC_RESTART_COUNT in COUNTS; do
  export TORCHELASTIC_RESTART_COUNT
  RANK=1 LOCAL_RANK=PLACE "$@"
  code=$?
  RANK=0 LOCAL_RANK=0 "$@" &
  rank=$!
  sleep 0.3
  kill -s TERM "$rank"
  wait "$rank"
done
exit "$code"
"""
# The code tells the attempts of a rank apart.
ATTEMPTS = """\
echo x >>"starts-$RANK"
[ "$RANK" = 1 ] || exec sleep 0.6
codes=(CODES)
exit "${codes[$(wc -l <starts-1) - 1]}"
"""


# On the same node, and on another one, whose agent has not failed and so counts no restart.
NODES = {"same": ("0 1 2", "1"), "another": ("0 0 0", "0")}


@pytest.fixture(params=NODES)
def torchrun(request: pytest.FixtureRequest, execute: Execute, tmp_path: Path) -> None:
    counts, place = NODES[request.param]
    path = tmp_path / "bin" / "torchrun"
    path.write_text(AGENT.replace("COUNTS", counts).replace("PLACE", place))
    path.chmod(0o755)


@pytest.mark.usefixtures("torchrun")
@pytest.mark.parametrize(("codes", "failure"), [("7 8 9", (1, 9)), ("7 8 0", None)])
def test_of_torchruns_attempts_the_last_one_counts(
    plan: Plans, execute: Execute, tmp_path: Path, codes: str, failure: object
) -> None:
    job = plan(
        "slurm-generic",
        launcher="torchrun",
        command=["bash", "-c", ATTEMPTS.replace("CODES", codes)],
        resources={"tasks_per_node": 2, "cpus_per_task": 1},
        elastic={"max_restarts": 2},
    )
    for attempt in ("0", "1"):
        (tmp_path / "starts-1").unlink(missing_ok=True)
        execute(job, tmp_path, SLURM_RESTART_COUNT=attempt)
        found = status(tmp_path).failure
        assert (found and (found.rank, found.exit_code)) == failure
    kept = tmp_path / "first_failure.log"
    assert kept.exists() == bool(failure)
    log = (tmp_path / "logs" / "rank-0.out").read_text()
    again = ["", "hpctrain: restart 1", "", "hpctrain: restart 2"]
    assert log.splitlines() == [*again, *again[:2], *again]
