"""Calls of Slurm's commands: their environment, transient errors, broken nodes."""

import os
import re
from collections.abc import Collection, Mapping

from hpc_train.base.processes import Finished, clean_environment, run
from hpc_train.base.slurm_options import sbatch_variables
from hpc_train.runs.run import SlurmEndpoint

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


# They would change the submission itself; `wait` would block until the job ends.
_NEVER = frozenset({"wait", "array", "output", "error", "open-mode", "comment", "exclude"})
# Outside a job the user has set these: MPI's network, a scratch folder.
_USER_PREFIXES = ("OMPI_MCA_", "PMIX_MCA_", "PRTE_MCA_", "LOCAL_")
_RANKS = frozenset({"LOCAL_RANK", "LOCAL_WORLD_SIZE"})
_DIRECTIVE = "#SBATCH --"
_SBATCH = "SBATCH_"


def option_of(variable: str) -> str | None:
    """Return the option of sbatch that a variable sets; None if sbatch does not read it."""
    return sbatch_variables().get(variable)


def options_in(script: str) -> dict[str, str]:
    """Return the options of sbatch that a script sets itself, and their values."""
    lines = [line for line in script.splitlines() if line.startswith(_DIRECTIVE)]
    pairs = (line.removeprefix(_DIRECTIVE).partition("=") for line in lines)
    return {name: value for name, _, value in pairs}


def environment_changes(
    environment: Mapping[str, str], cluster: SlurmEndpoint, options: Collection[str]
) -> dict[str, str | None]:
    """Return what to change in the environment of sbatch: a value to set, or None to remove.

    The variables of an outer job are removed, and so are SBATCH_… variables for one of `options`,
    which the script sets: they would override it (man sbatch). Other SBATCH_… variables are kept,
    and so are MPI options and LOCAL_… in a shell outside any job.
    """
    kept = clean_environment(environment)
    inside = "SLURM_JOB_ID" in environment
    changes: dict[str, str | None] = {
        name: None
        for name in environment
        if (option := option_of(name)) in _NEVER
        or option in options
        or (
            name not in kept
            and not name.startswith(_SBATCH)
            and (inside or not (name.startswith(_USER_PREFIXES) and name not in _RANKS))
        )
    }
    if cluster.conf and "SLURM_CONF" not in environment:
        changes["SLURM_CONF"] = cluster.conf
    return changes


def as_arguments(changes: Mapping[str, str | None]) -> list[str]:
    """Return the call of env(1) that makes the changes; empty if there are none."""
    if not changes:
        return []
    unset = [word for name, value in changes.items() if value is None for word in ("-u", name)]
    given = [f"{name}={value}" for name, value in changes.items() if value is not None]
    return ["env", *unset, *given]


def notices(environment: Mapping[str, str], options: Mapping[str, str]) -> tuple[str, ...]:
    """Return messages on the variables that are removed and those that remain effective.

    Of a variable whose value is that of the script, nothing is said.
    """
    changes = environment_changes(environment, SlurmEndpoint(), options)
    names = [name for name in changes if option_of(name) is None]
    outer, shown = environment.get("SLURM_JOB_ID"), ", ".join(names[:3])
    messages = []
    if names and outer:
        messages.append(
            f"this shell is inside Slurm job {outer}; {len(names)} of its variables "
            f"({shown}, …) are not passed on"
        )
    elif names:
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        are = "is" if len(names) == 1 else "are"
        messages.append(f"{shown}{more} of this shell {are} not passed on")
    for name in sorted(environment):
        option = option_of(name)
        value = f"{name}={environment[name]}"
        if option is not None and options.get(option) == environment[name]:
            continue
        if option is not None and name in changes:
            who = "script sets" if option in options else "submission decides on"
            messages.append(f"{value} is ignored: the {who} --{option} itself")
        elif option is not None:
            messages.append(f"{value} is effective: sbatch reads it as --{option}")
    return tuple(messages)
