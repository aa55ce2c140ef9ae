"""What the script does inside the job: names, status, the first failure, signals."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hpc_train.plans.plan import LaunchPlan
from hpc_train.scripts.render import render_script
from tests.scripts.job_starts import save
from tests.submissions.waiting import wait_for

Plans = Callable[..., LaunchPlan]
NAMES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "OMP_NUM_THREADS")
# A shell waits for a program to end before it does what a signal asks for.
HOLD = "while :; do sleep 0.05; done"
PRINT_NAMES = f"import json, os; print(json.dumps({{k: os.environ.get(k) for k in {NAMES!r}}}))"


def start(plan: LaunchPlan, folder: Path, **environment: str) -> subprocess.Popen[str]:
    script = folder / "job.sbatch"
    save(render_script(plan), script)
    return subprocess.Popen(
        ["bash", str(script)],
        env={**os.environ, "HPCTRAIN_RUN": str(folder), **environment},
        cwd=folder,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def status(folder: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads((folder / "status.json").read_text())
    return found


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


@pytest.mark.parametrize(
    "launcher",
    [
        pytest.param("mpirun", marks=pytest.mark.mpi),
        pytest.param("torchrun", marks=[pytest.mark.torch, pytest.mark.process]),
    ],
)
def test_ranks_have_torchs_names_and_a_log_each(plan: Plans, tmp_path: Path, launcher: str) -> None:
    if launcher == "torchrun":
        pytest.importorskip("torch")
    resources = {"tasks_per_node": 2, "cpus_per_task": 3}
    job = plan(command=python(PRINT_NAMES), launcher=launcher, resources=resources)
    # The names of an outer job must not leak in.
    process = start(job, tmp_path, RANK="7", WORLD_SIZE="9", LOCAL_RANK="5", MASTER_ADDR="other")
    output, _ = process.communicate(timeout=240)
    assert process.returncode == 0, output
    for rank in ("0", "1"):
        seen = json.loads((tmp_path / "logs" / f"rank-{rank}.out").read_text())
        assert seen == {
            "RANK": rank,
            "WORLD_SIZE": "2",
            "LOCAL_RANK": rank,
            "LOCAL_WORLD_SIZE": "2",
            "MASTER_ADDR": "127.0.0.1",
            "OMP_NUM_THREADS": "3",
        }


def test_the_status_tells_start_end_and_exit_code(plan: Plans, tmp_path: Path) -> None:
    before = time.time()
    job = plan(command=python("print('done')"), launcher="single")
    start(job, tmp_path).communicate(timeout=240)
    found = status(tmp_path)
    assert (
        before - 1 <= float(str(found["started"])) <= float(str(found["ended"])) <= time.time() + 1
    )
    assert (found["exit_code"], found["failure"]) == (0, None)


def test_setup_that_fails_ends_the_job(plan: Plans, tmp_path: Path) -> None:
    job = plan(
        command=python("open('ran', 'w')"), launcher="single", setup=["export X=1", "false", "true"]
    )
    process = start(job, tmp_path)
    process.communicate(timeout=240)
    assert process.returncode == 1
    assert status(tmp_path)["exit_code"] == 1
    assert not (tmp_path / "ran").exists()


def test_a_port_in_use_is_passed_over(plan: Plans, tmp_path: Path) -> None:
    """The same job id looks at the same port first; the second time it is taken."""
    job = plan(command=python("import os; print(os.environ['MASTER_PORT'])"), launcher="single")
    start(job, tmp_path, SLURM_JOB_ID="1234").communicate(timeout=240)
    first = int((tmp_path / "logs" / "rank-0.out").read_text())
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", first))
        taken.listen()
        start(job, tmp_path, SLURM_JOB_ID="1234").communicate(timeout=240)
    second = int((tmp_path / "logs" / "rank-0.out").read_text().splitlines()[-1])
    assert 61000 <= first < 65000
    # The next one, unless somebody else has it.
    assert first < second < first + 50


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_the_end_reaches_the_program_at_once(
    plan: Plans, tmp_path: Path, number: signal.Signals
) -> None:
    code = (
        "import signal, sys, time; signal.signal(signal.SIGTERM, lambda *_: sys.exit(5));"
        "print('up', flush=True); time.sleep(600)"
    )
    process = start(plan(command=python(code), launcher="single"), tmp_path)
    log = tmp_path / "logs" / "rank-0.out"
    wait_for(lambda: log.exists() and "up" in log.read_text())
    process.send_signal(number)
    # Long before the program would end by itself.
    process.communicate(timeout=240)
    assert process.returncode == 5
    found = status(tmp_path)
    assert (found["exit_code"], found["ended"] is None, found["failure"]) == (5, False, None)


def test_term_during_the_setup_is_no_success(plan: Plans, tmp_path: Path) -> None:
    """Bash that a signal ends runs its EXIT trap with the code of the command before."""
    job = plan(command=python(""), launcher="single", setup=["touch up", HOLD])
    process = start(job, tmp_path)
    wait_for((tmp_path / "up").exists)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=240)
    assert process.returncode == -signal.SIGTERM
    found = status(tmp_path)
    assert (found["exit_code"], found["ended"] is None, found["failure"]) == (143, False, None)
