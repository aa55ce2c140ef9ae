"""Runs programs of the system, which may be outside the PATH of users."""

from __future__ import annotations

import shutil
from collections.abc import Sequence

from hpc_train.base.errors import LabError
from hpc_train.base.processes import Finished, run
from hpc_train.lab.slurm_programs import search_path

_PATIENCE_S = 30.0


def installed(program: str) -> bool:
    """Whether a program can be found."""
    return shutil.which(program, path=search_path()) is not None


def ask(argv: Sequence[str], timeout_s: float = _PATIENCE_S) -> Finished:
    """Run a program that may fail."""
    return run(("env", f"PATH={search_path()}", *argv), timeout_s)


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
