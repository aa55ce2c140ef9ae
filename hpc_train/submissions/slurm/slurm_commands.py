"""Calls of Slurm's commands, the classification of transient errors, and broken nodes."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from hpc_train.model.submission import SlurmEndpoint
from hpc_train.subprocesses import Finished, clean_environment, run

# Variables that set options of the commands: SQUEUE_STATES, for example, would hide jobs.
_OPTIONS = ("SQUEUE_", "SACCT_", "SCANCEL_", "SCONTROL_", "SINFO_")

# Messages of Slurm (strings of libslurm and sbatch 22.05, most of them provoked on a real one), of
# libc for a broken connection, and of hpctrain for a command that was stopped.
_NO_ADDRESS = "unable to establish control machine address"
_PASSING = (
    _NO_ADDRESS,
    "unable to contact slurm controller",
    "socket timed out on send/recv operation",
    "zero bytes were transmitted or received",
    "in standby mode",
    "communication connection failure",
    "communication shutdown failure",
    "message send failure",
    "message receive failure",
    "failed to send entire message",
    "unable to connect to database",
    "temporarily unable to accept job",
    "job queue full",
    "job creation temporarily disabled",
    "currently unable to load job state information",
    "job is in transitional state",
    "try again",
    "connection refused",
    "connection reset by peer",
    "connection timed out",
    "transport endpoint is not connected",
    "broken pipe",
    "no route to host",
    "network is unreachable",
    "resource temporarily unavailable",
    "operation now in progress",
    "interrupted system call",
    "no answer within",
)
_PREFIX = re.compile(r"\w{1,64}: (error|fatal): |\[Errno \d+\] ")


def call_slurm(cluster: SlurmEndpoint, *argv: str, timeout_s: float = 30.0) -> Finished:
    """Run a command of Slurm with a cluster's configuration and without options from variables."""
    environment = _environment(cluster)
    refused = unreadable_conf(environment)
    if refused:
        return Finished(returncode=1, stdout="", stderr=refused)
    return run(argv, timeout_s, environment=environment)


def unreadable_conf(environment: Mapping[str, str]) -> str:
    """Return the error of a configuration that Slurm's commands would try to read for a minute."""
    conf = environment.get("SLURM_CONF")
    return f"SLURM_CONF={conf} cannot be read" if conf and not os.access(conf, os.R_OK) else ""


def _environment(cluster: SlurmEndpoint) -> dict[str, str]:
    environment = {
        name: value
        for name, value in clean_environment(os.environ).items()
        if not name.startswith(_OPTIONS)
    }
    # The value recorded at submission takes precedence over that of the current shell.
    if cluster.conf:
        environment["SLURM_CONF"] = cluster.conf
    if cluster.clusters is not None:
        environment["SLURM_CLUSTERS"] = cluster.clusters
    if not environment.get("SLURM_CLUSTERS"):
        environment.pop("SLURM_CLUSTERS", None)
    # Otherwise the list of array elements is truncated after 64 characters.
    return environment | {"LC_ALL": "C", "SLURM_BITSTR_LEN": "0"}


def transient(stderr: str) -> bool:
    """Whether an error of Slurm is transient: the controller is down, slow or restarting.

    The last error counts; earlier ones may be from attempts before Slurm answered.
    """
    error = _last_error(stderr).lower()
    return any(words in error for words in _PASSING)


def unanswered(done: Finished) -> str:
    """Return on one line why a command has no answer; empty if it has one.

    squeue and sacct may end with 0 after an error.
    """
    if done.returncode == 0 and (done.stdout or "error:" not in done.stderr):
        return ""
    error = _last_error(done.stderr) or f"exit code {done.returncode}"
    return _PREFIX.sub("", error, count=1).strip()


def _last_error(stderr: str) -> str:
    lines = stderr.strip().splitlines()
    # After an address that cannot be resolved, the last line has the errno of an earlier call.
    if len(lines) > 1 and _NO_ADDRESS in lines[-2].lower():
        return lines[-2]
    return lines[-1] if lines else ""


def broken_nodes(cluster: SlurmEndpoint) -> tuple[str, ...]:
    """Return the nodes that are down, draining, drained or failing; none without an answer."""
    answer = call_slurm(
        cluster, "sinfo", "--Node", "--noheader", "--states=down,drain,fail", "--format=%N"
    )
    return tuple(sorted(set(answer.stdout.split())))
