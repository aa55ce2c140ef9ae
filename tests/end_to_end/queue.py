"""States of the queue and its nodes that stay until a test ends them."""

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from tests.conftest import Slurm
from tests.submissions.waiting import wait_for

# Credentials have whole seconds; the node hears of the end a moment after the controller.
_REVOKED_S = 3.0


def wait_until_idle(slurm: Slurm) -> None:
    """Wait until no job is on any node: one that is ending is not given to the next."""
    wait_for(lambda: set(slurm("sinfo", "-h", "-N", "-o", "%T").split()) == {"idle"})


@contextmanager
def drained(slurm: Slurm, *nodes: str) -> Iterator[None]:
    """Keep jobs off nodes."""
    names = f"nodename={','.join(nodes)}"
    slurm("scontrol", "update", names, "state=drain", "reason=test")
    try:
        yield
    finally:
        slurm("scontrol", "update", names, "state=resume")


def start_now(job: str) -> None:
    """Let a job that was queued again start before its two minutes are over, unless it has.

    Not while a node still ends the start before, nor in the same second: slurmd refuses a job whose
    credential is not newer than the end of the start before (`Job credential revoked`), and Slurm
    lets it fail, or holds it (`launch failed requeued held`).
    """
    if subprocess.run(["pgrep", "-f", rf"^slurmstepd: \[{job}\."], capture_output=True).stdout:
        return
    if _queued_for_s(job) < _REVOKED_S:
        return
    subprocess.run(["scontrol", "update", f"jobid={job}", "starttime=now"], capture_output=True)
    argv = ["squeue", "--noheader", f"--jobs={job}", "--format=%r"]
    if "held" in subprocess.run(argv, capture_output=True, text=True).stdout:
        subprocess.run(["scontrol", "release", job], capture_output=True)


def starts_again(job: str) -> None:
    """Wait until a job that was queued again has left the queue, without its two minutes."""

    def left() -> bool:
        start_now(job)
        argv = ["squeue", "--noheader", f"--jobs={job}", "--format=%T"]
        said = subprocess.run(argv, capture_output=True, text=True).stdout
        return said.strip() != "PENDING"

    wait_for(left, every_s=0.3)


def _queued_for_s(job: str) -> float:
    """Return how long ago a job was queued, for the last time."""
    argv = ["squeue", "--noheader", f"--jobs={job}", "--format=%V"]
    when = subprocess.run(argv, capture_output=True, text=True).stdout.strip()
    return time.time() - datetime.fromisoformat(when).timestamp() if when else 0.0
