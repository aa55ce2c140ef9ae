"""What a submission must not inherit from the shell it is made in, and the words for it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

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
# Nothing asks another cluster how its jobs stand.
_ELSEWHERE = frozenset({"clusters", "cluster"})
# They would change what a submission is: wait for its end, or another log.
_NEVER = _ELSEWHERE | {"wait", "array", "output", "error", "open-mode", "comment", "exclude"}
# Outside a job these are what a user has set himself: MPI's network, a scratch folder.
_WISHES = ("OMPI_MCA_", "PMIX_MCA_", "PRTE_MCA_", "LOCAL_")
_RANKS = frozenset({"LOCAL_RANK", "LOCAL_WORLD_SIZE"})
_DIRECTIVE = "#SBATCH --"


def option_of(variable: str) -> str:
    """Return the option of sbatch that a variable SBATCH_… stands for."""
    plain = variable.removeprefix("SBATCH_").lower().replace("_", "-")
    return _OPTIONS.get(variable, plain)


def options_in(script: str) -> frozenset[str]:
    """Return the options of sbatch that a script sets itself."""
    lines = [line for line in script.splitlines() if line.startswith(_DIRECTIVE)]
    return frozenset(line.removeprefix(_DIRECTIVE).partition("=")[0] for line in lines)


def scrubbed(
    environment: Mapping[str, str], cluster: Cluster, options: Collection[str]
) -> dict[str, str | None]:
    """Return what to change in the environment of sbatch: a value to set, or None to remove.

    The variables of an outer job go. So do those SBATCH_… that stand for one of `options`, which
    the script sets itself: they would win over it (man sbatch). Others are the user's wish, as is
    what he told MPI, or named LOCAL_…, in a shell that is in no job.
    """
    kept = clean_environment(environment)
    inside = "SLURM_JOB_ID" in environment
    changes: dict[str, str | None] = {
        name: None
        for name in environment
        if name not in kept
        and (not name.startswith("SBATCH_") or _overrides(name, options))
        and (inside or not _wished(name))
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


def _wished(name: str) -> bool:
    return name.startswith(_WISHES) and name not in _RANKS


def notices(environment: Mapping[str, str], options: Collection[str]) -> tuple[str, ...]:
    """Say in sentences what of the environment is left behind and what stays in force."""
    changes = scrubbed(environment, Cluster(), options)
    said = _leaks(environment, [name for name in changes if not name.startswith("SBATCH_")])
    for name in sorted(name for name in environment if name.startswith("SBATCH_")):
        value = f"{name}={environment[name]}"
        if name in changes:
            said.append(f"{value} is ignored: {_reason(option_of(name), options)}")
        else:
            said.append(f"{value} is in force: sbatch takes it as --{option_of(name)}")
    return tuple(said)


def _leaks(environment: Mapping[str, str], leaks: Sequence[str]) -> list[str]:
    if not leaks:
        return []
    outer, names = environment.get("SLURM_JOB_ID"), ", ".join(leaks[:3])
    if outer:
        return [
            f"this shell is inside Slurm job {outer}; {len(leaks)} of its variables "
            f"({names}, …) are not passed on"
        ]
    more = f" and {len(leaks) - 3} more" if len(leaks) > 3 else ""
    return [f"{names}{more} of this shell {'is' if len(leaks) == 1 else 'are'} not passed on"]


def _reason(option: str, options: Collection[str]) -> str:
    if option in _ELSEWHERE and option not in options:
        return "a job on another cluster cannot be followed"
    who = "the script" if option in options else "the submission"
    return f"{who} sets --{option} itself"
