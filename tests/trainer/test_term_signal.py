"""TERM in a job that is queued again: a rank saves, unless another rank has failed."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
ROOT = Path(__file__).resolve().parents[2]
BEGIN = """\
import datetime, os, signal, subprocess, sys, time
import torch
from hpc_train.trainer import checkpoint
checkpoint.should_stop()
"""
UNTIL_ASKED = (
    BEGIN + "print('ready', flush=True)\nwhile not checkpoint.should_stop(): time.sleep(0.01)\n"
)
# No handler of Python runs while C++ waits.
STUCK = (
    BEGIN
    + """\
store = torch.distributed.TCPStore("127.0.0.1", 0, is_master=True)
print("ready", flush=True)
store.wait(["never"], datetime.timedelta(seconds=300))
"""
)
CHILD = (
    BEGIN
    + """\
if (child := os.fork()) == 0:
    print("ready", flush=True)
    time.sleep(300)
_, status = os.waitpid(child, 0)
sys.exit(os.WTERMSIG(status))
"""
)
LOADER = (
    BEGIN
    + """\
from torch.utils.data import DataLoader
loader = DataLoader(range(10**6), num_workers=2, worker_init_fn=INIT, prefetch_factor=2)
batches = iter(loader)
for number, batch in enumerate(batches):
    if number == 4:
        print("ready", flush=True)
    if checkpoint.should_stop():
        break
    time.sleep(0.01)
# The workers go on after the rank has noted the signal, and a second one.
subprocess.run(["kill", "-TERM", "--", f"-{os.getpgid(0)}"], start_new_session=True, check=True)
assert len([next(batches) for _ in range(20)]) == 20
sys.exit(75)
"""
)


def run(
    program: str, folder: Path, *, group: bool = False, child: bool = False, **extra: str
) -> tuple[int, str]:
    """Run a program, send it TERM when it is ready, and return its exit code and stderr."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "HPCTRAIN_STOP_AT_TERM": "1"}
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        env={**environment, "HPCTRAIN_FAILURE_FILE": str(folder / "first_failure"), **extra},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n", process.communicate()
    if child:
        pid = int(Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()[0])
        os.kill(pid, signal.SIGTERM)
    elif group:
        os.killpg(process.pid, signal.SIGTERM)
    else:
        process.terminate()
    _, said = process.communicate(timeout=400)
    return process.returncode, said


def test_term_asks_a_rank_to_stop(tmp_path: Path) -> None:
    assert run(UNTIL_ASKED, tmp_path) == (0, "")
    # One that is being written has no content yet.
    (tmp_path / "first_failure").touch()
    assert run(UNTIL_ASKED, tmp_path) == (0, "")


def test_term_ends_a_rank_of_a_job_that_is_not_queued_again(tmp_path: Path) -> None:
    assert run(UNTIL_ASKED, tmp_path, HPCTRAIN_STOP_AT_TERM="") == (-signal.SIGTERM, "")


@pytest.mark.parametrize("program", [UNTIL_ASKED, STUCK])
def test_a_rank_ends_at_once_after_the_failure_of_another(tmp_path: Path, program: str) -> None:
    (tmp_path / "first_failure").write_text("3 n2 1 1795811278.6\n")
    code, _ = run(program, tmp_path)
    assert code == 128 + signal.SIGTERM


def test_a_child_of_a_rank_ends(tmp_path: Path) -> None:
    assert run(CHILD, tmp_path, child=True) == (signal.SIGTERM, "")


def test_workers_of_a_data_loader_outlive_the_request(tmp_path: Path) -> None:
    """Slurm signals every process of the rank."""
    program = LOADER.replace("INIT", "checkpoint.keep_worker")
    assert run(program, tmp_path, group=True) == (75, "")
    code, said = run(LOADER.replace("INIT", "None"), tmp_path, group=True)
    assert code == 1
    lost = ("killed by signal: Terminated", "exited unexpectedly", "Connection reset by peer")
    assert any(words in said for words in lost), said
