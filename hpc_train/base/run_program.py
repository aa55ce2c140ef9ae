"""Runs system programs; reads their output, their errors and the numbers in them."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable

from hpc_train.base.subprocesses import Finished, clean_environment, run
from hpc_train.base.value import Value

# Variables that set options of the commands: SINFO_FORMAT would change the output.
_OPTIONS = ("SQUEUE_", "SACCT_", "SCONTROL_", "SINFO_", "SLURM_TIME_FORMAT")
_PREFIX = re.compile(r"^(\w+: )?(error|fatal): ", re.IGNORECASE)
_LONGEST = 160
ABSENT = "not installed"
_MOST_DIGITS = 15


class Answer(Value, frozen=True, kw_only=True):
    """The output of a program; `problem` is the reason if it cannot be used."""

    text: str
    problem: str = ""


Ask = Callable[..., Answer]


def ask(*argv: str, timeout_s: float = 30.0) -> Answer:
    """Run a program with English messages, without options from environment variables."""
    if shutil.which(argv[0]) is None:
        return Answer(text="", problem=ABSENT)
    conf = os.environ.get("SLURM_CONF")
    if conf and not os.access(conf, os.R_OK):
        # Slurm's commands would retry once a second for a minute.
        return Answer(text="", problem=f"SLURM_CONF={conf} cannot be read")
    return answer_of(run(argv, timeout_s, environment=environment()))


def environment() -> dict[str, str]:
    """Return the environment for programs whose output is read."""
    kept = clean_environment(os.environ)
    plain = {name: value for name, value in kept.items() if not name.startswith(_OPTIONS)}
    return plain | {"LC_ALL": "C"}


def answer_of(done: Finished) -> Answer:
    """Return the output of a program; for a failure, its last line."""
    if done.returncode == 0 and (done.stdout.strip() or "error:" not in done.stderr):
        # `srun --mpi=list` printed to stderr before 22.05.
        return Answer(text=done.stdout or done.stderr)
    if done.returncode == 127 and not done.stdout:
        return Answer(text="", problem=ABSENT)
    lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
    return Answer(text="", problem=_PREFIX.sub("", printable(lines[-1]), count=1))


def printable(text: str) -> str:
    """Return the beginning of a text, with `?` for each control character."""
    return "".join(c if c.isprintable() else "?" for c in text.strip())[:_LONGEST]


def whole(text: str | None) -> int | None:
    """Return a whole number of ASCII digits, at most 15; None for any other text."""
    if text is None or not (text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS):
        return None
    return int(text)
