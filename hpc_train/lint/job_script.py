"""The model of a job script: lines, directives, commands, variables, launches."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise

from msgspec.structs import replace

from hpc_train.lint.control_flow import Blocks, read_blocks
from hpc_train.lint.directives import Directive, first_command, read_directives
from hpc_train.lint.launch_commands import SHELLS, LaunchCommand, read_launches
from hpc_train.lint.pbs_directives import joined_lines, read_pbs_directives
from hpc_train.lint.pbs_request import PbsRequest, read_pbs_request
from hpc_train.lint.plugin_options import with_plugins
from hpc_train.lint.requested_resources import RequestedResources, asked_of
from hpc_train.lint.script_variables import Assignment, Values, known_values, read_assignments
from hpc_train.lint.shell.ast import Command, HereDocument, Unclosed, Word
from hpc_train.lint.shell.commands import ShellText, read_commands
from hpc_train.model.site import SiteProfile
from hpc_train.model.value import Value
from hpc_train.slurm_options import sbatch_grammar, srun_grammar

_OTHER = re.compile(r"^#!.*\b(python[\d.]*|perl|csh|tcsh|fish|Rscript|julia)\b")


class JobScript(Value, frozen=True, kw_only=True):
    """`commands` are those of the batch shell, `task_commands` those of `bash -c` below a launcher.

    `inner_lines` are the lines that begin inside a here-document or a quoted text: they belong to
    another program. If the script is not a shell script, only the header is read. `pbs` is what
    its `#PBS` lines request, if it has any.
    """

    text: str
    lines: tuple[str, ...]
    inner_lines: frozenset[int]
    first_command: int
    shell: bool
    directives: tuple[Directive, ...]
    asked: RequestedResources
    commands: tuple[Command, ...]
    blocks: dict[Command, Blocks]
    task_commands: tuple[Command, ...]
    documents: tuple[HereDocument, ...]
    unclosed: tuple[Unclosed, ...]
    assignments: tuple[Assignment, ...]
    values: Values
    launches: tuple[LaunchCommand, ...]
    pbs: PbsRequest | None = None

    @property
    def live_directives(self) -> tuple[Directive, ...]:
        """The directives that sbatch reads."""
        return tuple(directive for directive in self.directives if not directive.late)

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

    def around(self, found: Command | Assignment) -> Blocks:
        """Return the loops and branches around a command or an assignment."""
        if isinstance(found, Command):
            return self.blocks.get(found, ())
        for command, blocks in self.blocks.items():
            if found.word in (*command.assignments, *command.words):
                return blocks
        return ()

    def runs(self, *programs: str) -> tuple[Command, ...]:
        """Return the commands of these programs."""
        return tuple(found for found in self.commands if found.program in programs)


def read_script(text: str, site: SiteProfile | None = None) -> JobScript:
    """Read a script; any text can be read, the rules report the errors.

    The site's profile may declare further options of sbatch and srun.
    """
    lines, marked = joined_lines(tuple(line.rstrip("\r") for line in text.split("\n")))
    shell = _OTHER.match(lines[0]) is None
    read = read_commands("\n".join(lines) if shell else "")
    inner = frozenset(inner_lines(read) if shell else lines_of_strings(lines))
    directives = read_directives(lines, with_plugins(sbatch_grammar(), site), inner)
    pbs = read_pbs_request(replace(read_pbs_directives(lines, inner), marked=marked))
    asked = asked_of(directives) if directives or pbs is None else _sizes(pbs)
    commands = without_function_calls(read.commands)
    tasks = tuple(inner for command in commands for inner in _task_commands(command))
    assignments = read_assignments(commands)
    values = known_values(assignments, asked.slurm)
    return JobScript(
        text=text,
        lines=lines,
        inner_lines=inner,
        first_command=first_command(lines),
        shell=shell,
        directives=directives,
        asked=asked,
        commands=commands,
        blocks=dict(read_blocks(commands)),
        task_commands=tasks,
        documents=read.documents,
        unclosed=read.unclosed,
        assignments=(*assignments, *_in_tasks(tasks)),
        values=values,
        launches=read_launches(commands, values, with_plugins(srun_grammar(), site)),
        pbs=pbs,
    )


def _sizes(pbs: PbsRequest) -> RequestedResources:
    """Return the sizes of a job of PBS, which has no options of sbatch."""
    return RequestedResources(
        batch=False, options={}, nodes=pbs.nodes, gpus_per_node=pbs.gpus_per_node
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
    return tuple(replace(found, inside="task") for found in read_assignments(commands))


_TRIPLE = re.compile(r"\"{3}|'{3}")


def inner_lines(read: ShellText) -> Iterator[int]:
    """Yield the numbers of the lines that begin inside a here-document or a word."""
    for document in read.documents:
        yield from document.lines
    for command in read.commands:
        for word in (*command.assignments, *command.words):
            yield from _inside(word)


def _inside(word: Word) -> Iterator[int]:
    # The commands of a substitution, and the words of an array, are the script's own lines.
    if not word.items and "$(" not in word.raw and "`" not in word.raw:
        yield from range(word.line + 1, word.line + 1 + word.raw.count("\n"))


def lines_of_strings(lines: tuple[str, ...]) -> Iterator[int]:
    """Yield the numbers of the lines that begin inside a triple-quoted string of Python."""
    open_ = ""
    for number, line in enumerate(lines, 1):
        if open_:
            yield number
        for match in _TRIPLE.finditer(line):
            open_ = "" if match[0] == open_ else open_ or match[0]


def without_function_calls(commands: tuple[Command, ...]) -> tuple[Command, ...]:
    """Replace each call of such a function by the command that it runs, in the background if so."""
    endings = dict(_runners(commands))
    return tuple(_run(command, endings) for command in commands) if endings else commands


def _runners(commands: Iterable[Command]) -> Iterator[tuple[str, str]]:
    """Yield the functions whose body has the command `"$@"`, and the operator after it."""
    name = ""
    for command, following in pairwise(commands):
        if command.program == "function":
            name = command.words[1].text if len(command.words) > 1 else ""
        elif len(command.words) == 1 and command.ending == "(":
            name = command.program
        if following.words and following.words[0].raw == '"$@"' and name:
            yield name, following.ending


def _run(command: Command, endings: Mapping[str, str]) -> Command:
    ending = endings.get(command.program)
    if ending is None or len(command.words) == 1:
        return command
    words = command.words[1:]
    ending = "&" if ending == "&" else command.ending
    return replace(command, words=words, line=words[0].line, ending=ending)
