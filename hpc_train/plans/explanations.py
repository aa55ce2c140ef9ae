"""The reason for each directive, the trap that it avoids, and differences of Slurm versions."""

import re
from functools import cache
from typing import Literal

import msgspec

from hpc_train.base.decode import load_data
from hpc_train.base.values import Value


class Reason(Value, frozen=True, kw_only=True):
    """`trap` is its number in docs/linting.md, or empty."""

    why: str
    trap: str = ""


class Explanations(Value, frozen=True, kw_only=True):
    """`explanations.yaml`: the reasons of directives, and of the options of each program."""

    schema: Literal[1]
    directives: dict[str, Reason]
    programs: dict[str, dict[str, Reason]]


@cache
def explanations() -> Explanations:
    """Return the table."""
    return load_data("explanations.yaml", Explanations)


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
