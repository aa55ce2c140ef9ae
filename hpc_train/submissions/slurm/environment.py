"""What a submission must not inherit from the shell it is made in, and the words for it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from hpc_train.errors import nearest
from hpc_train.model.submission import Cluster
from hpc_train.shell import clean_environment
from hpc_train.slurm_options import sbatch_variables

# They would change what a submission is; `wait` would make it last as long as the job.
_NEVER = frozenset({"wait", "array", "output", "error", "open-mode", "comment", "exclude"})
_REASONS = {
    "wait": "submit returns at once (--wait of hpctrain follows the runs)",
    "error": "the submission puts both streams into one log",
    "open-mode": "the log is always appended to",
}
# Outside a job these are what a user has set himself: MPI's network, a scratch folder.
_WISHES = ("OMPI_MCA_", "PMIX_MCA_", "PRTE_MCA_", "LOCAL_")
_RANKS = frozenset({"LOCAL_RANK", "LOCAL_WORLD_SIZE"})
_DIRECTIVE = "#SBATCH --"
_SBATCH = "SBATCH_"


def option_of(variable: str) -> str | None:
    """Return the option of sbatch that a variable stands for; None for one it does not read."""
    return sbatch_variables().get(variable)


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
        if _overrides(name, options)
        or (name not in kept and not name.startswith(_SBATCH) and (inside or not _wished(name)))
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
    said = _leaks(environment, [name for name in changes if option_of(name) is None])
    for name in sorted(environment):
        option = option_of(name)
        value = f"{name}={environment[name]}"
        if option is not None and name in changes:
            said.append(f"{value} is ignored: {_reason(option, options)}")
        elif option is not None:
            said.append(f"{value} is in force: sbatch takes it as --{option}")
        elif name.startswith(_SBATCH):
            tails = [known.removeprefix(_SBATCH) for known in sbatch_variables()]
            near = nearest(name.removeprefix(_SBATCH), tails)
            said.append(f"{value}: sbatch reads no variable of that name{near}")
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
    if option in options:
        return f"the script sets --{option} itself"
    return _REASONS.get(option, f"the submission sets --{option} itself")
