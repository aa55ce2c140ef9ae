"""Starts the trainer as a job would: real processes on the loopback interface."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.submissions.waiting import LIMIT_S

TINY = ("--data", "synthetic", "--width", "2", "--steps", "4")
_NO_HOST_NAME = "The hostname of the client socket cannot be retrieved"
FOREIGN = ("RANK", "WORLD_SIZE", "LOCAL_", "NODE_RANK", "NNODES", "MASTER_", "HPCTRAIN_", "SLURM_")


def environment(**extra: object) -> dict[str, str]:
    """Return this environment without anything of a launcher, plus `extra`."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    return {**clean, "OMP_NUM_THREADS": "1", **{k: str(v) for k, v in extra.items()}}


def meeting_point() -> dict[str, object]:
    """Return MASTER_ADDR and a MASTER_PORT that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": probe.getsockname()[1]}


def start(command: tuple[str | Path, ...], **extra: object) -> subprocess.Popen[str]:
    """Start `python COMMAND` with pipes for its output."""
    return subprocess.Popen(
        [sys.executable, *command],
        env=environment(**extra),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Return exit code, stdout and stderr."""
    with process:
        try:
            out, err = process.communicate(timeout=LIMIT_S)
        finally:
            process.kill()
    return process.returncode, out, without_remark(err)


def without_remark(err: str) -> str:
    """Return stderr without what torch says of a machine without DNS."""
    return "".join(line for line in err.splitlines(keepends=True) if _NO_HOST_NAME not in line)


def trainer(*arguments: str) -> tuple[str, ...]:
    """Return the trainer's command line."""
    return ("-m", "hpc_train.trainer.train", *arguments)


def events(text: str, kind: str) -> list[dict[str, Any]]:
    """Return the events of one kind, in order."""
    lines = [line.removeprefix("@hpct ") for line in text.splitlines() if line.startswith("@hpct ")]
    return [event for event in map(json.loads, lines) if event["event"] == kind]
