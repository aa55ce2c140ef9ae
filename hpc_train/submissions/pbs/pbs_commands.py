"""Calls of PBS's commands, and the classification of transient errors."""

from __future__ import annotations

import os

from hpc_train.subprocesses import Finished, clean_environment, run

_TIMEOUT_S = 30.0
# Messages of PBS's commands, of its library and of libc for a server that does not answer, and of
# hpctrain for a command that was stopped (OpenPBS 23.06, pbs_err_to_txt).
_PASSING = (
    "cannot connect to server",
    "communication failure",
    "no permission to connect",
    "end of file",
    "premature end of message",
    "server is shutting down",
    "pbs server is not ready",
    "connection refused",
    "connection reset by peer",
    "connection timed out",
    "timed out",
    "broken pipe",
    "no route to host",
    "network is unreachable",
    "no answer within",
    "too many connections",
    "try again",
)
# After these errors the request was not accepted; after any other it may have been.
NOT_REACHED = ("cannot connect to server", "connection refused", "no route to host", "unreachable")


def call_pbs(*argv: str, timeout_s: float | None = None) -> Finished:
    """Run a command of PBS without the variables of an outer job, with messages in English."""
    return run(argv, timeout_s or _TIMEOUT_S, environment=environment())


def environment() -> dict[str, str]:
    """Return the environment of PBS's commands; of an outer job, only the server is kept."""
    outer = ("PBS_JOB", "PBS_O_", "PBS_NODE", "PBS_TASK", "PBS_ARRAY", "PBS_QUEUE", "PBS_ENV")
    clean = clean_environment(os.environ)
    kept = {name: value for name, value in clean.items() if not name.startswith(outer)}
    return kept | {"LC_ALL": "C"}


def transient(stderr: str) -> bool:
    """Whether an error of PBS is transient: its server is down, slow or restarting."""
    text = stderr.lower()
    return any(words in text for words in _PASSING)


def message_of(done: Finished) -> str:
    """Return the error of a command on one line, without the names of commands."""
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    words = [line.partition(": ")[2] if _is_prefixed(line) else line for line in lines]
    return "; ".join(words) or f"exit code {done.returncode}"


def _is_prefixed(line: str) -> bool:
    return line.startswith(("qsub: ", "qstat: ", "qdel: ", "qselect: "))
