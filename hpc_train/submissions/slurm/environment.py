"""What a submission must not inherit from the shell it is made in, and the words for it."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from hpc_train.model.submission import Cluster
from hpc_train.shell import clean_environment

# Variables of sbatch that are not called as their option is (man sbatch, input environment).
_OPTIONS = {
    "SBATCH_ARRAY_INX": "array",
    "SBATCH_TIMELIMIT": "time",
    "SBATCH_MEM_PER_NODE": "mem",
    "SBATCH_NODES": "nodes",
    "SBATCH_NUM_NODES": "nodes",
}
# They would change what a submission is: wait for its end, or another log.
_NEVER = frozenset({"wait", "array", "output", "error", "open-mode", "comment", "exclude"})


def option_of(variable: str) -> str:
    """Return the option of sbatch that a variable SBATCH_… stands for."""
    plain = variable.removeprefix("SBATCH_").lower().replace("_", "-")
    return _OPTIONS.get(variable, plain)


def scrubbed(
    environment: Mapping[str, str], cluster: Cluster, options: Collection[str]
) -> dict[str, str | None]:
    """Return what to change in the environment of sbatch: a value to set, or None to remove.

    The variables of an outer job go. So do those SBATCH_… that stand for one of `options`, which
    the script sets itself: they would win over it (man sbatch). Others are the user's wish.
    """
    kept = clean_environment(environment)
    changes: dict[str, str | None] = {
        name: None
        for name in environment
        if name not in kept and (not name.startswith("SBATCH_") or _overrides(name, options))
    }
    if cluster.conf and "SLURM_CONF" not in environment:
        changes["SLURM_CONF"] = cluster.conf
    return changes


def as_arguments(changes: Mapping[str, str | None]) -> list[str]:
    """Return the call of env(1) that makes the changes; nothing when there are none."""
    if not changes:
        return []
    unset = [word for name, value in changes.items() if value is None for word in ("-u", name)]
    given = [f"{name}={value}" for name, value in changes.items() if value is not None]
    return ["env", *unset, *given]


def _overrides(name: str, options: Collection[str]) -> bool:
    option = option_of(name)
    return option in _NEVER or option in options


def notices(environment: Mapping[str, str], options: Collection[str]) -> tuple[str, ...]:
    """Say in sentences what of the environment is left behind and what stays in force."""
    said = []
    changes = scrubbed(environment, Cluster(), options)
    outer = environment.get("SLURM_JOB_ID")
    leaks = [name for name in changes if not name.startswith("SBATCH_")]
    if outer and leaks:
        said.append(
            f"this shell is inside Slurm job {outer}; {len(leaks)} of its variables "
            f"({', '.join(leaks[:3])}, …) are not passed on"
        )
    for name in sorted(name for name in environment if name.startswith("SBATCH_")):
        value = f"{name}={environment[name]}"
        if name in changes:
            who = "the script" if option_of(name) in options else "the submission"
            said.append(f"{value} is ignored: {who} sets --{option_of(name)} itself")
        else:
            said.append(f"{value} is in force: sbatch takes it as --{option_of(name)}")
    return tuple(said)
