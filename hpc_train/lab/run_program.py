"""Runs programs of the system, which may be outside the PATH of users."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence

from hpc_train.errors import LabError
from hpc_train.subprocesses import Finished, run

# Daemons and network tools are in folders that the PATH of users, and of su, does not contain.
SEARCH_PATH = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])
_PATIENCE_S = 30.0


def installed(program: str) -> bool:
    """Whether a program can be found."""
    return shutil.which(program, path=SEARCH_PATH) is not None


def ask(argv: Sequence[str], timeout_s: float = _PATIENCE_S) -> Finished:
    """Run a program that may fail."""
    return run(("env", f"PATH={SEARCH_PATH}", *argv), timeout_s)


def must(argv: Sequence[str], timeout_s: float = _PATIENCE_S) -> str:
    """Run a program that must succeed; return its output.

    Raises:
        LabError: it failed; the message has the last line of its error output.
    """
    done = ask(argv, timeout_s)
    if done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise LabError(f"`{' '.join(argv)}` failed: {said[-1] if said else done.returncode}")
    return done.stdout


def slurm(folder: str, *argv: str) -> tuple[str, ...]:
    """Return the command line of a Slurm program for a configuration."""
    return ("env", f"SLURM_CONF={folder}/slurm.conf", *argv)
