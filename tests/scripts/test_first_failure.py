"""Who failed first, when, and what it said last."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hpc_train.cli.follow_runs import log_tail
from hpc_train.plans.plan import LaunchPlan
from hpc_train.runs.run import JobState, JobStatus, Run, RunFolder
from hpc_train.runs.run_folders import read_run
from hpc_train.scripts.render import render_script
from tests.scripts.job_starts import save
from tests.submissions.waiting import wait_for

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


def wrapped(plan: LaunchPlan, folder: Path, code: int) -> None:
    """Run the wrapper of a rank that ends with a code."""
    text = save(render_script(plan), folder / "job.sbatch").read_text()
    lines = re.findall("^(?:hpctrain_[a-z_]+|rank_wrapper)=.*", text, re.M)
    lines.insert(-1, f". {folder}/runtime.sh")
    wrapper = "\n".join([*lines, f'exec bash -c "$rank_wrapper" rank bash -c "exit {code}"'])
    (folder / "logs").mkdir(exist_ok=True)
    environment = {
        "PATH": os.environ["PATH"],
        "HPCTRAIN_RUN": str(folder),
        "HPCTRAIN_LOG_DIR": str(folder / "logs"),
        "HPCTRAIN_FAILURE_FILE": str(folder / "first_failure"),
        "SLURMD_NODENAME": "n1",
        **dict.fromkeys(("SLURM_PROCID", "SLURM_LOCALID", "OMPI_COMM_WORLD_RANK"), "0"),
        **dict.fromkeys(("SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE"), "2"),
        **{f"OMPI_COMM_WORLD_LOCAL_{name}": "0" for name in ("RANK", "SIZE")},
    }
    done = subprocess.run(
        ["bash", "-c", wrapper], env=environment, capture_output=True, text=True, timeout=240
    )
    assert (done.returncode, done.stderr) == (code, "")


@pytest.fixture(params=["srun", "mpirun"])
def restarted(request: pytest.FixtureRequest, plan: Plans) -> LaunchPlan:
    resources = {"tasks_per_node": 2, "cpus_per_task": 1, "time": "5m"}
    return plan(
        "slurm-generic",
        launcher=request.param,
        command=["true"],
        resources=resources,
        lifecycle={"requeue_on": [1, 75, 85]},
    )


def test_of_two_ranks_that_fail_at_once_none_removes_the_record_of_the_other(
    restarted: LaunchPlan, tmp_path: Path
) -> None:
    """A rank that asks for another start comes while another one has made the file."""
    record = tmp_path / "first_failure"
    with record.open("x") as file:
        wrapped(restarted, tmp_path, 75)
        file.write("1 n2 1 1795811278.6\n")
    assert record.read_text() == "1 n2 1 1795811278.6\n"
    assert not (tmp_path / "first_failure.log").exists()


@pytest.mark.parametrize(("code", "recorded"), [(1, False), (143, False), (75, True), (85, True)])
def test_after_a_signal_to_the_job_only_ranks_that_ask_for_another_start_count(
    restarted: LaunchPlan, tmp_path: Path, code: int, recorded: bool
) -> None:
    (tmp_path / "first_failure.signal").touch()
    wrapped(restarted, tmp_path, code)
    record = tmp_path / "first_failure"
    assert record.exists() == recorded
    # A later failure changes nothing.
    before = record.read_text() if recorded else None
    wrapped(restarted, tmp_path, 75)
    assert before in (None, record.read_text())
    assert record.read_text().split()[1:3] == ["n1", str(code if recorded else 75)]


SAVE = """\
import signal, sys, time
signal.signal(signal.SIGUSR1, lambda *_: (print("saved", flush=True), sys.exit(0)))
print("ready", flush=True)
time.sleep(600)
"""
# Open MPI hands USR1 on to all processes of a rank.
MPIRUN = """\
#!/bin/bash
set -m
while [ "$1" != bash ]; do shift; done
export OMPI_COMM_WORLD_SIZE=1 OMPI_COMM_WORLD_LOCAL_RANK=0 OMPI_COMM_WORLD_LOCAL_SIZE=1
# Before the rank starts: the signal may come as soon as the rank is ready.
trap 'kill -s USR1 -- "-$!"' USR1
OMPI_COMM_WORLD_RANK=0 "$@" &
child=$!
until wait "$child"; code=$?; ! kill -0 "$child" 2>/dev/null; do :; done
exit "$code"
"""


def warned(folder: Path, **more: str) -> None:
    """Run a job, and send it Slurm's signal when its rank is ready; the rank says what it saved."""
    (folder / "bin" / "mpirun").write_text(MPIRUN)
    (folder / "bin" / "mpirun").chmod(0o755)
    words = ["bash", str(folder / "job.sbatch"), str(folder)]
    path = f"{folder / 'bin'}:{os.environ['PATH']}"
    environment = {"PATH": path, "SLURM_JOB_NODELIST": "localhost", **more}
    log = folder / "logs" / "rank-0.out"
    with subprocess.Popen(words, env=environment, cwd=folder) as process:
        try:
            wait_for(lambda: log.exists() and log.read_text() == "ready\n")
            process.send_signal(signal.SIGUSR1)
            assert process.wait(timeout=240) == 0
        finally:
            process.terminate()
    assert log.read_text() == "ready\nsaved\n"


@pytest.mark.parametrize("launcher", ["single", "mpirun"])
def test_the_ranks_save_what_they_have(
    plan: Plans, execute: Execute, tmp_path: Path, launcher: str
) -> None:
    command = [sys.executable, "-c", SAVE]
    job = plan("slurm-generic", command=command, launcher=launcher, signal_before_end="2m")
    text = save(render_script(job), tmp_path / "job.sbatch").read_text()
    assert "#SBATCH --signal=B:USR1@120\n" in text
    warned(tmp_path)
    status = json.loads((tmp_path / "status.json").read_text())
    assert (status["exit_code"], status["failure"]) == (0, None)


BY_FILE = """\
import os, pathlib, signal, sys, time
signal.signal(signal.SIGUSR1, lambda *_: sys.exit(9))
print("ready", flush=True)
while not pathlib.Path(os.environ["HPCTRAIN_STOP_FILE"]).exists():
    time.sleep(0.1)
print("saved", flush=True)
"""


@pytest.mark.parametrize("launcher", ["single", "mpirun"])
def test_a_file_asks_the_ranks_instead(
    plan: Plans, execute: Execute, tmp_path: Path, launcher: str
) -> None:
    keys = {"signal_before_end": "2m", "lifecycle": {"stop_by": "file"}}
    command = [sys.executable, "-c", BY_FILE]
    job = plan("slurm-generic", command=command, launcher=launcher, **keys)
    save(render_script(job), tmp_path / "job.sbatch")
    # Of the start before, which was asked to stop.
    (tmp_path / "stop").touch()
    warned(tmp_path, SLURM_JOB_ID="71")


def test_a_rank_that_a_signal_of_its_own_ended_is_guilty(
    plan: Plans, execute: Execute, tmp_path: Path
) -> None:
    execute(slurm(plan, "kill -s KILL $$", tasks=1), tmp_path)
    failure = status(tmp_path).failure
    assert failure is not None
    assert failure.exit_code == 137
