"""Rules on the names of variables: unknown and removed variables."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from functools import cache
from typing import Literal

from hpc_train.base.decode import load_data
from hpc_train.base.shell import Command
from hpc_train.base.value import Value, older
from hpc_train.lint.launches import Assignment
from hpc_train.lint.rule import RuleHit, Subject, rule
from hpc_train.lint.script import JobScript


class NcclVariables(Value, frozen=True, kw_only=True):
    """The table of variables, by name; see the comments of `nccl_variables.yaml`.

    `documented` gives the version that introduced a variable; the items of `undocumented_families`
    are prefixes; `values` are the values that NCCL accepts.
    """

    schema: Literal[1]
    documented: dict[str, str]
    undocumented: tuple[str, ...]
    undocumented_families: tuple[str, ...]
    removed: dict[str, dict[str, str]]
    never_read: dict[str, str]
    read_by_torch: tuple[str, ...]
    values: dict[str, tuple[str, ...]]

    def knows(self, name: str) -> bool:
        """Whether the table contains a variable of that name."""
        groups = (
            self.documented,
            self.undocumented,
            self.removed,
            self.never_read,
            self.read_by_torch,
        )
        if any(name in group for group in groups):
            return True
        return name.startswith(self.undocumented_families)


@cache
def nccl_variables() -> NcclVariables:
    """Return the contents of `nccl_variables.yaml`."""
    return load_data("nccl_variables.yaml", NcclVariables)


_PLACES = re.compile(r"_(HOME|ROOT|DIR|PATH|PREFIX|VERSION|LIBRARY|LIB|LIBS|TESTS?|BIN|ARGS|OPTS)$")


def _exported(subject: Subject) -> list[Assignment]:
    """Return the exported NCCL_ variables."""
    return [f for f in subject.script.assignments if f.exported and f.name.startswith("NCCL_")]


@rule(
    "HT501",
    "warning",
    "removed NCCL variable",
    why="NCCL silently ignores a variable that it no longer has.",
    advice="leave it out, or set its successor",
)
def removed_name(subject: Subject) -> Iterator[RuleHit]:
    version = subject.context.nccl
    for found in _exported(subject):
        removed = nccl_variables().removed.get(found.name)
        if removed is None:
            continue
        gone = removed["version"]
        if not older(version, gone):
            yield RuleHit(
                found.line,
                f"{found.name} has no effect: removed in NCCL {gone}",
                advice=f"instead: {removed['instead']}",
                severity=None if version or older(gone, "2.25") else "info",
            )


@rule(
    "HT502",
    "warning",
    "unknown NCCL variable",
    why="NCCL silently ignores unknown variables: with a typing error the default remains "
    "effective.",
    advice="correct the name, or leave it out",
)
def unknown_name(subject: Subject) -> Iterator[RuleHit]:
    known = nccl_variables()
    for found in _exported(subject):
        name = found.name
        if name in known.never_read:
            advice = f"instead: {known.never_read[name]}"
            yield RuleHit(found.line, f"no version of NCCL reads {name}", advice=advice)
        elif not known.knows(name) and not _PLACES.search(name):
            read = [*known.documented, *known.undocumented]
            near = difflib.get_close_matches(name, read, n=1, cutoff=0.8)
            hint = f"; did you mean {near[0]}?" if near else ""
            yield RuleHit(
                found.line,
                f"NCCL (up to 2.32) has no variable {name}{hint}",
                # A newer NCCL or a plug-in may read it.
                severity=None if near else "info",
            )


@rule(
    "HT505",
    "warning",
    "NCCL variable from a later version",
    why="An NCCL that is older than the variable silently ignores it.",
    advice="leave it out, or use a newer NCCL",
)
def too_new(subject: Subject) -> Iterator[RuleHit]:
    version = subject.context.nccl
    for found in _exported(subject):
        since = nccl_variables().documented.get(found.name)
        if since and older(version, since):
            yield RuleHit(found.line, f"{found.name} was added in NCCL {since}; this is {version}")


_COMPONENT = re.compile(r"_(?:HET|PACK)_GROUP_\d+$")
_TALK = ("echo", "printf")
_TESTS = ("[", "[[", "test")
_INSTEAD = {
    "SLURM_GPUS_PER_NODE": "use $SLURM_GPUS_ON_NODE, which every job with GPUs has",
    "SLURM_NTASKS_PER_NODE": "add #SBATCH --ntasks-per-node=N",
    "SLURM_CPUS_PER_TASK": "add #SBATCH --cpus-per-task=N",
}


class SlurmVariables(Value, frozen=True, kw_only=True):
    """The names of all variables, and the options without which some are not set."""

    schema: Literal[1]
    names: tuple[str, ...]
    by_option: dict[str, tuple[str, ...]]


@cache
def slurm_variables() -> SlurmVariables:
    """Return the table of Slurm's variables."""
    return load_data("slurm_variables.yaml", SlurmVariables)


def _used(commands: tuple[Command, ...]) -> Iterator[tuple[str, int, Command]]:
    """Yield each use of a Slurm variable, in the batch script or its tasks, with its line."""
    for command in commands:
        for word in (*command.assignments, *command.words):
            for name in word.expanded:
                if name.startswith(("SLURM_", "SLURMD_")):
                    yield name, word.line, command


@rule(
    "HT312",
    "warning",
    "unknown Slurm variable",
    why="A variable that Slurm does not set expands to nothing: with a typing error the option or "
    "the address is empty.",
    advice="correct the name",
)
def unknown_variable(subject: Subject) -> Iterator[RuleHit]:
    script = subject.script
    known = slurm_variables().names
    seen = {word.text for command in script.commands for word in command.words}
    seen |= {found.name for found in script.assignments}
    for name, line, _ in _used((*script.commands, *script.task_commands)):
        bare = _COMPONENT.sub("", name)
        # `read` and `for` also give a variable its value.
        if bare in known or name in seen:
            continue
        seen.add(name)
        meant = _meant(bare)
        if meant:
            yield RuleHit(line, f"Slurm sets no variable {name}; did you mean {meant}?")


def _meant(name: str) -> str:
    """Return the variable whose name differs by `_`, `NUM_` for `N`, or a letter; or nothing.

    A site may set any other name, such as SLURM_TMPDIR; CPUS for GPUS is another variable.
    """
    names = slurm_variables().names
    flat, *others = (one.replace("_NUM_", "_N").replace("_", "") for one in (name, *names))
    near = difflib.get_close_matches(flat, others, n=1, cutoff=0.94)
    meant = names[others.index(near[0])] if near else ""
    return meant if ("GPU" in meant) == ("GPU" in name) else ""


@rule(
    "HT313",
    "warning",
    "Slurm variable that is not set",
    why="Slurm sets some variables only if the option of the same name is given: the variable is "
    "empty if GPUs are requested with --gres, or tasks with --ntasks.",
    advice="request it with the option of the same name",
)
def unset_variable(subject: Subject) -> Iterator[RuleHit]:
    script = subject.script
    if not script.asked.batch or any(directive.group for directive in script.directives):
        return
    # An option of srun sets them for its tasks.
    by_option = slurm_variables().by_option
    seen = {name for one in script.launches for name in by_option if one.option(*by_option[name])}
    for name, line, command in _used((*script.commands, *script.task_commands)):
        options = by_option.get(name)
        if options is None or name in seen or command.program in _TALK:
            continue
        # Whether the script requests what the variable counts, by another option.
        asked = script.asked
        counted = asked.has("nodes", "ntasks", "ntasks-per-node")
        concerns = asked.gpus if name == "SLURM_GPUS_PER_NODE" else counted
        if asked.has(*options) or not concerns or _guarded(script, name):
            continue
        seen.add(name)
        yield RuleHit(line, f"{name} is not set: it needs --{options[0]}", advice=_INSTEAD[name])


def _guarded(script: JobScript, name: str) -> bool:
    """Whether the script sets the variable, tests it, or has a default for it."""
    if script.sets(name) or re.search(rf"\$\{{{name}(?:\[[^]]{{0,9}}\])?[:=?+-]", script.text):
        return True
    tests = [command for command in script.commands if command.program in _TESTS]
    return any(name in word.expanded for command in tests for word in command.words)
