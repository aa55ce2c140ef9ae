"""USR1 before the time limit, handed on by the script to ranks that Slurm did not start."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hpc_train.model.plan import LaunchPlan
from hpc_train.scripts.render import render_script
from tests.pipeline.waiting import wait_for

Plans = Callable[..., LaunchPlan]
Execute = Callable[..., subprocess.CompletedProcess[str]]
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


@pytest.mark.parametrize("launcher", ["single", "mpirun"])
def test_the_ranks_save_what_they_have(
    plan: Plans, execute: Execute, tmp_path: Path, launcher: str
) -> None:
    (tmp_path / "bin" / "mpirun").write_text(MPIRUN)
    (tmp_path / "bin" / "mpirun").chmod(0o755)
    command = [sys.executable, "-c", SAVE]
    job = plan("slurm-generic", command=command, launcher=launcher, signal_before_end="2m")
    text = render_script(job).text
    assert "#SBATCH --signal=B:USR1@120\n" in text
    (tmp_path / "job.sbatch").write_text(text)
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    words = ["bash", str(tmp_path / "job.sbatch"), str(tmp_path)]
    environment = {"PATH": path, "SLURM_JOB_NODELIST": "localhost"}
    log = tmp_path / "logs" / "rank-0.out"
    with subprocess.Popen(words, env=environment, cwd=tmp_path) as process:
        try:
            wait_for(lambda: log.exists() and log.read_text() == "ready\n")
            process.send_signal(signal.SIGUSR1)
            assert process.wait(timeout=240) == 0
        finally:
            process.terminate()
    assert log.read_text() == "ready\nsaved\n"
    status = json.loads((tmp_path / "status.json").read_text())
    assert (status["exit_code"], status["failure"]) == (0, None)


@pytest.mark.parametrize("launcher", ["srun", "torchrun"])
def test_the_script_itself_is_left_alone_by_slurm(plan: Plans, launcher: str) -> None:
    """Slurm brings the signal to the ranks, and no second one must follow."""
    text = render_script(plan("slurm-generic", launcher=launcher, signal_before_end="2m")).text
    assert "#SBATCH --signal=USR1@120\n" in text
    assert "kill -s USR1" not in text


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
    (tmp_path / "bin" / "mpirun").write_text(MPIRUN)
    (tmp_path / "bin" / "mpirun").chmod(0o755)
    keys = {"signal_before_end": "2m", "lifecycle": {"stop_by": "file"}}
    command = [sys.executable, "-c", BY_FILE]
    text = render_script(plan("slurm-generic", command=command, launcher=launcher, **keys)).text
    (tmp_path / "job.sbatch").write_text(text)
    # Of the start before, which was asked to stop.
    (tmp_path / "stop").touch()
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    words = ["bash", str(tmp_path / "job.sbatch"), str(tmp_path)]
    environment = {"PATH": path, "SLURM_JOB_NODELIST": "localhost", "SLURM_JOB_ID": "71"}
    log = tmp_path / "logs" / "rank-0.out"
    with subprocess.Popen(words, env=environment, cwd=tmp_path) as process:
        try:
            wait_for(lambda: log.exists() and log.read_text() == "ready\n")
            process.send_signal(signal.SIGUSR1)
            assert process.wait(timeout=240) == 0
        finally:
            process.terminate()
    assert log.read_text() == "ready\nsaved\n"
