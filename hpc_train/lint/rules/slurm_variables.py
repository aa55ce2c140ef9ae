"""Rules on Slurm's variables: misspelt ones, and those that the job does not have."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Literal

from hpc_train.lint.job_script import JobScript
from hpc_train.lint.launch_commands import LaunchCommand
from hpc_train.lint.rule import RuleHit, Subject, rule
from hpc_train.lint.shell.ast import Command
from hpc_train.model.value import Value
from hpc_train.typed_values import load_data

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
            message = f"Slurm sets no variable {name}; did you mean {meant}?"
            yield RuleHit(line=line, message=message)


def _meant(name: str) -> str:
    """Return the variable whose name differs by `_`, `NUM_` for `N`, or one letter; or nothing.

    A site may set any other name, such as SLURM_TMPDIR.
    """
    flat = _flat(name)
    known = {_flat(one): one for one in slurm_variables().names}
    if flat in known:
        return known[flat]
    return next((known[one] for one in known if _one_letter(flat, one)), "")


def _flat(name: str) -> str:
    return name.replace("_NUM_", "_N").replace("_", "")


def _one_letter(one: str, other: str) -> bool:
    """Whether two texts differ by a letter; a C for a G is another variable."""
    short, long = sorted((one, other), key=len)
    pairs = enumerate(zip(short, long, strict=False))
    same = next((index for index, (a, b) in pairs if a != b), len(short))
    if len(short) == len(long):
        return short[same + 1 :] == long[same + 1 :] and {short[same], long[same]} != {"C", "G"}
    return len(short) + 1 == len(long) and short[same:] == long[same + 1 :]


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
    seen = {name for launch in script.launches for name in _set_by_step(launch)}
    for name, line, command in _used((*script.commands, *script.task_commands)):
        options = slurm_variables().by_option.get(name)
        if options is None or name in seen or command.program in _TALK:
            continue
        if script.asked.has(*options) or _guarded(script, name) or not _concerns(script, name):
            continue
        seen.add(name)
        message = f"{name} is not set: it needs --{options[0]}"
        yield RuleHit(line=line, message=message, advice=_INSTEAD[name])


def _set_by_step(launch: LaunchCommand) -> Iterator[str]:
    """Yield the variables that an option of srun sets for its tasks."""
    for name, options in slurm_variables().by_option.items():
        if launch.option(*options):
            yield name


def _guarded(script: JobScript, name: str) -> bool:
    """Whether the script sets the variable, tests it, or has a default for it."""
    if script.sets(name) or re.search(rf"\$\{{{name}(?:\[[^]]{{0,9}}\])?[:=?+-]", script.text):
        return True
    tests = [command for command in script.commands if command.program in _TESTS]
    return any(name in word.expanded for command in tests for word in command.words)


def _concerns(script: JobScript, name: str) -> bool:
    """Whether the script itself requests what the variable counts, by another option."""
    asked = script.asked
    if name == "SLURM_GPUS_PER_NODE":
        return asked.has("gpus", "gpus-per-task") or "gpu" in (asked.value("gres") or "")
    return asked.has("nodes", "ntasks", "ntasks-per-node")
