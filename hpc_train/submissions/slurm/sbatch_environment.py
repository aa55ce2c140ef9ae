"""Variables of the shell that a submission must not inherit, and the notices about them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from hpc_train.errors import nearest
from hpc_train.model.submission import SlurmEndpoint
from hpc_train.slurm_options import sbatch_variables
from hpc_train.subprocesses import clean_environment

# They would change the submission itself; `wait` would block until the job ends.
_NEVER = frozenset({"wait", "array", "output", "error", "open-mode", "comment", "exclude"})
_REASONS = {
    "wait": "submit never waits (--wait of hpctrain follows the runs)",
    "error": "the submission writes both streams to one log",
    "open-mode": "the log is always appended to",
}
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
        if _overrides(name, options)
        or (
            name not in kept and not name.startswith(_SBATCH) and (inside or not _set_by_user(name))
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


def _overrides(name: str, options: Collection[str]) -> bool:
    option = option_of(name)
    return option in _NEVER or option in options


def _set_by_user(name: str) -> bool:
    return name.startswith(_USER_PREFIXES) and name not in _RANKS


def notices(environment: Mapping[str, str], options: Mapping[str, str]) -> tuple[str, ...]:
    """Return messages on the variables that are removed and those that remain effective.

    Of a variable whose value is that of the script, nothing is said.
    """
    changes = environment_changes(environment, SlurmEndpoint(), options)
    messages = _removed(environment, [name for name in changes if option_of(name) is None])
    for name in sorted(environment):
        option = option_of(name)
        value = f"{name}={environment[name]}"
        if option is not None and options.get(option) == environment[name]:
            continue
        if option is not None and name in changes:
            messages.append(f"{value} is ignored: {_reason(option, options)}")
        elif option is not None:
            messages.append(f"{value} is effective: sbatch reads it as --{option}")
        elif name.startswith(_SBATCH):
            tails = [known.removeprefix(_SBATCH) for known in sbatch_variables()]
            near = nearest(name.removeprefix(_SBATCH), tails)
            messages.append(f"{value}: sbatch reads no variable of that name{near}")
    return tuple(messages)


def _removed(environment: Mapping[str, str], names: Sequence[str]) -> list[str]:
    if not names:
        return []
    outer, shown = environment.get("SLURM_JOB_ID"), ", ".join(names[:3])
    if outer:
        return [
            f"this shell is inside Slurm job {outer}; {len(names)} of its variables "
            f"({shown}, …) are not passed on"
        ]
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return [f"{shown}{more} of this shell {'is' if len(names) == 1 else 'are'} not passed on"]


def _reason(option: str, options: Collection[str]) -> str:
    if option in options:
        return f"the script sets --{option} itself"
    return _REASONS.get(option, f"the submission sets --{option} itself")
