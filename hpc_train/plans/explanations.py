"""The reason for each directive, the trap that it avoids, and differences of Slurm versions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Literal

import msgspec

from hpc_train.base.decode import load_data
from hpc_train.base.values import Value
from hpc_train.plans.plan import Setting


class Reason(Value, frozen=True, kw_only=True):
    """`trap` is its number in docs/linting.md, or empty."""

    why: str
    trap: str = ""


# Directives whose name differs from that of their setting.
_SETTINGS = {
    "job-name": "name",
    "ntasks-per-node": "tasks_per_node",
    "cpus-per-task": "cpus_per_task",
    "gpus-per-node": "gpus_per_node",
    "gres": "gpus_per_node",
    "signal": "signal_before_end",
    "requeue": "lifecycle.requeue_on",
    "gpus": "gpus_per_node",
    "gpus-per-task": "gpus_per_node",
    "mem-per-gpu": "mem",
    "mem-per-cpu": "mem",
    # Of PBS, whose -A or -P is the project.
    "N": "name",
    "q": "partition",
    "A": "account",
    "P": "account",
    "select": "nodes",
    "place": "exclusive",
    "ncpus": "cpus_per_task",
    "ngpus": "gpus_per_node",
    "walltime": "time",
}


class Explanations(Value, frozen=True, kw_only=True):
    """`explanations.yaml`: the reasons of directives, and of the options of each program."""

    schema: Literal[1]
    directives: dict[str, Reason]
    programs: dict[str, dict[str, Reason]]


@cache
def explanations() -> Explanations:
    """Return the table."""
    return load_data("explanations.yaml", Explanations)


def setting_of(option: str, settings: Mapping[str, Setting]) -> Setting:
    """Return the setting of a directive, with the directive's own reason if it has one."""
    key = _SETTINGS.get(option, option.replace("-", "_"))
    requests = (name for name in settings if name.startswith("storage."))
    needed = next((name for name in requests if name.endswith(f" --{option}")), "")
    # Of the queue, of a request of the job, or of its storage.
    found = settings.get(f"select.{option}") or settings.get(key) or settings.get(needed)
    added, resources = settings.get(f"directives.{option}"), settings.get("directives.l")
    if resources is not None and f"{option}=" in str(resources.value):
        found = resources
    # `false` only removes the site's option.
    if added is not None and added.value is not False:
        found = added
    origin = found.origin if found else "rule"
    reason = explanations().directives.get(option)
    why = reason.why if reason else (found.why if found else "")
    return Setting(value=found.value if found else None, origin=origin, why=why)


Parts = tuple[int, ...]


class Range(Value, frozen=True, kw_only=True):
    """The versions from `first` to `last`; None: no such limit is known."""

    first: str | None = None
    last: str | None = None
    source: str

    def covers(self, version: str) -> bool:
        """Whether a version, such as 23.11 or 23.11.4, is among them."""
        wanted = _parts(version)
        after = self.first is None or wanted >= _parts(self.first)
        return after and (self.last is None or wanted <= _parts(self.last))


class Fact(Range, frozen=True, kw_only=True):
    """A behaviour of Slurm in some versions.

    `places` are the files that mention these versions, or `named`, the version of a table.
    `adds`: by option, the form of the values that only these versions accept; `refuses`: the form
    of those that they refuse and the others accept.
    """

    what: str
    named: str | None = None
    places: tuple[str, ...] = ()
    adds: dict[str, str] = msgspec.field(default_factory=dict)
    refuses: dict[str, str] = msgspec.field(default_factory=dict)


class OptionRange(Range, frozen=True, kw_only=True):
    """The versions in which some programs have some options."""

    names: tuple[str, ...]
    of: tuple[str, ...]


class SlurmVersions(Value, frozen=True, kw_only=True):
    """`slurm_versions.yaml`.

    `everywhere`: the options that hpctrain gives to programs other than sbatch and srun.
    """

    schema: Literal[1]
    versions: tuple[str, ...]
    facts: dict[str, Fact]
    options: tuple[OptionRange, ...]
    everywhere: dict[str, tuple[str, ...]]


@cache
def slurm_versions() -> SlurmVersions:
    """Return the table."""
    return load_data("slurm_versions.yaml", SlurmVersions)


def option_range(program: str, option: str) -> OptionRange | None:
    """Return the versions with an option of a program; None if all have it."""
    ranges = slurm_versions().options
    return next((one for one in ranges if program in one.of and option in one.names), None)


def missing_option(program: str, option: str, version: str) -> str:
    """Return why a version does not have an option; empty if it has it."""
    found = option_range(program, option)
    if found is None or found.covers(version):
        return ""
    return f"{program} has --{option} only {_when(found)}"


def unavailable_value(option: str, value: str, version: str) -> str:
    """Return why a version does not accept a value of an option; empty if it may accept it."""
    for fact in slurm_versions().facts.values():
        if not fact.covers(version) and _has_form(fact.adds.get(option), value):
            return f"--{option}={value} exists only {_when(fact)}"
        if fact.covers(version) and _has_form(fact.refuses.get(option), value):
            return f"--{option}={value} is refused {_when(fact)}"
    return ""


def _has_form(form: str | None, value: str) -> bool:
    return form is not None and re.fullmatch(form, value, re.IGNORECASE) is not None


def _when(found: Range) -> str:
    return f"from {found.first} on" if found.first else f"until {found.last}"


def _parts(version: str) -> Parts:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:2])
