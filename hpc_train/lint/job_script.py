"""The model of a job script: lines, directives, commands, variables, launches."""

from __future__ import annotations

import re

from hpc_train.lint.directives import Directive, first_command, read_directives
from hpc_train.lint.function_calls import without_function_calls
from hpc_train.lint.launch_commands import SHELLS, LaunchCommand, read_launches
from hpc_train.lint.requested_resources import RequestedResources, asked_of
from hpc_train.lint.script_variables import Assignment, Values, known_values, read_assignments
from hpc_train.lint.shell.ast import Command, HereDocument, Unclosed
from hpc_train.lint.shell.commands import read_commands
from hpc_train.model.value import Value

_OTHER = re.compile(r"^#!.*\b(python[\d.]*|perl|csh|tcsh|fish|Rscript|julia)\b")


class JobScript(Value, frozen=True, kw_only=True):
    """`commands` are those of the batch shell, `task_commands` those of `bash -c` below a launcher.

    If the script is not a shell script, only the header is read.
    """

    text: str
    lines: tuple[str, ...]
    first_command: int
    shell: bool
    directives: tuple[Directive, ...]
    asked: RequestedResources
    commands: tuple[Command, ...]
    task_commands: tuple[Command, ...]
    documents: tuple[HereDocument, ...]
    unclosed: tuple[Unclosed, ...]
    assignments: tuple[Assignment, ...]
    values: Values
    launches: tuple[LaunchCommand, ...]

    def settings(self, *names: str) -> tuple[Assignment, ...]:
        """Return the assignments to these variables."""
        return tuple(found for found in self.assignments if found.name in names)

    def exported_values(self, *names: str) -> tuple[Assignment, ...]:
        """Return the exported variables of these names whose value is known and not empty."""
        return tuple(
            one for one in self.settings(*names) if one.exported and one.literal and one.value
        )

    def sets(self, *names: str) -> bool:
        """Return whether any of these variables is set."""
        return any(found.name in names for found in self.assignments)

    def runs(self, *programs: str) -> tuple[Command, ...]:
        """Return the commands of these programs."""
        return tuple(found for found in self.commands if found.program in programs)


def read_script(text: str) -> JobScript:
    """Read a script; any text can be read, the rules report the errors."""
    lines = tuple(line.rstrip("\r") for line in text.split("\n"))
    shell = _OTHER.match(lines[0]) is None
    directives = read_directives(lines)
    asked = asked_of(directives)
    read = read_commands("\n".join(lines) if shell else "")
    commands = without_function_calls(read.commands)
    tasks = tuple(inner for command in commands for inner in _task_commands(command))
    assignments = read_assignments(commands)
    values = known_values(assignments, asked.slurm)
    return JobScript(
        text=text,
        lines=lines,
        first_command=first_command(lines),
        shell=shell,
        directives=directives,
        asked=asked,
        commands=commands,
        task_commands=tasks,
        documents=read.documents,
        unclosed=read.unclosed,
        assignments=(*assignments, *_in_tasks(tasks)),
        values=values,
        launches=read_launches(commands, values),
    )


def _task_commands(command: Command) -> tuple[Command, ...]:
    """Return the commands in the text of `bash -c 'text'`."""
    texts = [word.text.rpartition("/")[2] for word in command.words]
    for index, text in enumerate(texts[:-1]):
        if re.fullmatch(r"-[a-z]*c", text) and any(
            t in SHELLS for t in texts[max(0, index - 3) : index]
        ):
            word = command.words[index + 1]
            return read_commands(word.text, word.line).commands
    return ()


def _in_tasks(commands: tuple[Command, ...]) -> tuple[Assignment, ...]:
    from msgspec.structs import replace

    return tuple(replace(found, inside="task") for found in read_assignments(commands))
