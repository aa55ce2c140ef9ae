"""What differs between versions of Slurm: facts, and options that not every version has."""

from __future__ import annotations

import re
from functools import cache
from typing import Literal

from hpc_train.model.value import Value
from hpc_train.typed_values import load_data

Parts = tuple[int, ...]


class Fact(Value, frozen=True, kw_only=True):
    """A behaviour of Slurm from `first` to `last`; None: no such limit is known.

    `places` are the files that mention these versions, or `named`, the version of a table.
    """

    what: str
    first: str | None = None
    last: str | None = None
    named: str | None = None
    source: str
    places: tuple[str, ...] = ()


class OptionRange(Value, frozen=True, kw_only=True):
    """The versions in which some programs have some options."""

    names: tuple[str, ...]
    of: tuple[str, ...]
    first: str | None = None
    last: str | None = None
    source: str

    def covers(self, version: str) -> bool:
        """Whether a version, such as 23.11 or 23.11.4, has the options."""
        wanted = _parts(version)
        after = self.first is None or wanted >= _parts(self.first)
        return after and (self.last is None or wanted <= _parts(self.last))


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
    when = f"from {found.first} on" if found.first else f"until {found.last}"
    return f"{program} has --{option} only {when}"


def _parts(version: str) -> Parts:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:2])
