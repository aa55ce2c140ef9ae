"""Which lab `hpctrain lab up` starts, and which options that one has."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import click
from click.core import ParameterSource

# The labs other than Slurm's, by their option, and the other options of each.
OPTIONS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "ssh": frozenset(("nodes", "folder")),
        "pbs": frozenset(("nodes", "cpus", "mem", "folder")),
        "sagemaker": frozenset(),
    }
)
_SPELLED = {"folder": "dir"}


def kind_of_lab(ctx: click.Context) -> str:
    """Return the option that selects the lab; empty for Slurm's.

    Raises:
        click.UsageError: two labs at once, or an option that the lab does not have.
    """
    kinds = [name for name in OPTIONS if ctx.params[name]]
    if not kinds:
        return ""
    if len(kinds) > 1:
        both = " and ".join(f"--{name}" for name in kinds)
        raise click.UsageError(f"{both} are labs of their own; start one after the other", ctx)
    (kind,) = kinds
    for name in sorted(stated(ctx) - OPTIONS[kind] - {kind}):
        option = _SPELLED.get(name, name.replace("_", "-"))
        raise click.UsageError(f"--{kind} starts a lab that has no option --{option}", ctx)
    return kind


def stated(ctx: click.Context) -> set[str]:
    """Return the names of the options that are on the command line."""
    given = ParameterSource.COMMANDLINE
    return {name for name in ctx.params if ctx.get_parameter_source(name) is given}
