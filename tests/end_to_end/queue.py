"""States of the queue and its nodes that stay until a test ends them."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from tests.conftest import Slurm
from tests.pipeline.waiting import wait_for


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

    Not while a node still ends the start before: slurmd would refuse the job, and it would fail.
    A job that slurmd refused all the same is held by Slurm (`launch failed requeued held`).
    """
    if subprocess.run(["pgrep", "-f", rf"^slurmstepd: \[{job}\."], capture_output=True).stdout:
        return
    subprocess.run(["scontrol", "update", f"jobid={job}", "starttime=now"], capture_output=True)
    argv = ["squeue", "--noheader", f"--jobs={job}", "--format=%r"]
    if "held" in subprocess.run(argv, capture_output=True, text=True).stdout:
        subprocess.run(["scontrol", "release", job], capture_output=True)
