"""The model of a job script: lines, directives, commands, variables, launches."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec.structs import replace

from hpc_train.base.shell import (
    Blocks,
    Command,
    HereDocument,
    ShellText,
    Unclosed,
    Word,
    depends,
    read_blocks,
    read_commands,
    repeats,
)
from hpc_train.base.slurm_options import sbatch_grammar, srun_grammar
from hpc_train.base.values import Value
from hpc_train.lint.directives import (
    Directive,
    RequestedResources,
    asked_of,
    first_command,
    read_directives,
    share,
    with_plugins,
)
from hpc_train.lint.launches import (
    Assignment,
    LaunchCommand,
    Values,
    is_shell,
    known_values,
    read_assignments,
    read_launches,
)
from hpc_train.lint.pbs import PbsRequest, joined_lines, read_pbs_request

if TYPE_CHECKING:
    from hpc_train.sites.profile import SiteProfile

_OTHER = re.compile(r"^#!.*\b(python[\d.]*|perl|csh|tcsh|fish|Rscript|julia)\b")


class JobScript(Value, frozen=True, kw_only=True):
    """`commands` are those of the batch shell, `task_commands` those of `bash -c` below a launcher.

    `inner_lines` are the lines that begin inside a here-document or a quoted text: they belong to
    another program. If the script is not a shell script, only the header is read. `pbs` is what
    its `#PBS` lines request.
    """

    text: str
    lines: tuple[str, ...]
    inner_lines: frozenset[int]
    first_command: int
    shell: bool
    directives: tuple[Directive, ...]
    asked: RequestedResources
    commands: tuple[Command, ...]
    blocks: dict[Command | Word, Blocks]
    task_commands: tuple[Command, ...]
    documents: tuple[HereDocument, ...]
    unclosed: tuple[Unclosed, ...]
    assignments: tuple[Assignment, ...]
    values: Values
    launches: tuple[LaunchCommand, ...]
    pbs: PbsRequest
    programs: frozenset[str]

    @property
    def only_pbs(self) -> bool:
        """Whether it is a job of PBS, and of no other scheduler."""
        return bool(self.pbs) and not self.directives

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
        return self.blocks.get(found if isinstance(found, Command) else found.word, ())

    def runs(self, *programs: str) -> tuple[Command, ...]:
        """Return the commands of these programs."""
        if self.programs.isdisjoint(programs):
            return ()
        return tuple(found for found in self.commands if found.program in programs)


def read_script(text: str, site: SiteProfile | None = None) -> JobScript:
    """Read a script; any text can be read, the rules report the errors.

    The site's profile may declare further options of sbatch and srun.
    """
    lines = joined_lines(tuple(line.rstrip("\r") for line in text.split("\n")))
    shell = _OTHER.match(lines[0]) is None
    read = read_commands("\n".join(lines) if shell else "")
    first = first_command(lines)
    # Of another language, only the header is read.
    inner = frozenset(inner_lines(read) if shell else range(first + 1, len(lines) + 1))
    directives = read_directives(lines, with_plugins(sbatch_grammar(), site), inner)
    pbs = read_pbs_request(lines, inner)
    asked = asked_of(directives)
    if pbs and not directives:
        # A job of PBS has no options of sbatch.
        asked = replace(asked, nodes=pbs.nodes, gpus_per_node=pbs.gpus_per_node)
    commands = read.commands
    tasks = tuple(inner for command in commands for inner in _task_commands(command))
    assignments = read_assignments(commands)
    blocks: dict[Command | Word, Blocks] = {}
    branches = set()
    for command, around in read_blocks(commands):
        blocks[command] = around
        branches |= {*command.assignments} if depends(around) else set()
        for word in (*command.assignments, *command.words):
            blocks.setdefault(word, around)
    values = known_values(assignments, asked.slurm, branches)
    return JobScript(
        text=text,
        lines=lines,
        inner_lines=inner,
        first_command=first,
        shell=shell,
        directives=directives,
        asked=asked,
        commands=commands,
        blocks=blocks,
        task_commands=tasks,
        documents=read.documents,
        unclosed=read.unclosed,
        assignments=(
            *assignments,
            *(replace(found, inside="task") for found in read_assignments(tasks)),
        ),
        values=values,
        launches=read_launches(commands, values, with_plugins(srun_grammar(), site)),
        pbs=pbs,
        programs=frozenset(command.program for command in commands),
    )


def _task_commands(command: Command) -> tuple[Command, ...]:
    """Return the commands in the text of `bash -c 'text'`."""
    for index, word in enumerate(command.words[1:]):
        if is_shell(command.words, index):
            return read_commands(word.text, word.line).commands
    return ()


def inner_lines(read: ShellText) -> Iterator[int]:
    """Yield the numbers of the lines that begin inside a here-document or a word."""
    for document in read.documents:
        yield from document.lines
    for command in read.commands:
        for word in (*command.assignments, *command.words):
            # The commands of a substitution, and the words of an array, are the script's own.
            if not word.items and "$(" not in word.raw and "`" not in word.raw:
                yield from range(word.line + 1, word.line + 1 + word.raw.count("\n"))


_REMOTE = ("ssh", "pdsh", "clush", "parallel", "pbsdsh", "ray", "horovodrun", "sbatch", "jsrun")
_STARTERS = ("python", "torchrun", "accelerate", "deepspeed")


def rank_launches(
    script: JobScript, *starters: str, outer: str | None = None
) -> Iterator[LaunchCommand]:
    """Yield the launches of training, not `srun hostname` or `python -c …`, of these programs."""
    for launch in script.launches:
        if launch.starter in (starters or _STARTERS) and not launch.asks:
            if outer is None or launch.outer == outer:
                yield launch


def tasks_of(launch: LaunchCommand, script: JobScript) -> int | None:
    """Return how many tasks an srun starts, if that is known."""
    option = launch.option("ntasks")
    if option:
        return script.values.number(option.value)
    nodes, each = launch.option("nodes"), launch.option("ntasks-per-node")
    if not nodes and not each:
        return script.asked.tasks
    count = script.values.number(nodes.value) if nodes else script.asked.nodes
    per_node = script.values.number(each.value) if each else script.asked.tasks_per_node
    return count * per_node if count and per_node else None


def starts_several(launch: LaunchCommand, script: JobScript) -> bool:
    """Return whether an srun certainly starts more than one task."""
    tasks = tasks_of(launch, script)
    if tasks is None and not launch.option("ntasks", "nodes", "ntasks-per-node"):
        tasks = script.asked.tasks_per_node
    return tasks is not None and tasks > 1


def nodes_of(launch: LaunchCommand, script: JobScript) -> int | None:
    """Return on how many nodes an srun starts tasks, if that is known."""
    option = launch.option("nodes")
    return script.values.number(option.value) if option else script.asked.nodes


def starts_elsewhere(script: JobScript) -> bool:
    """Return whether another program than srun and mpirun starts processes on other nodes."""
    return bool(script.runs(*_REMOTE)) or "pbs_tmrsh" in script.text


def is_one_of_several(launch: LaunchCommand, script: JobScript) -> bool:
    """Whether further launches beside this one start the other nodes of the same run.

    A loop with one srun for each node; a step of a head node beside steps of workers; ssh.
    """
    if repeats(script.around(launch.command)) or starts_elsewhere(script):
        return True
    is_step = launch.outer == "srun" and launch.command.ending == "&"
    return is_step and launch.option("nodelist", "relative", "nodes") is not None


def flag_number(launch: LaunchCommand, script: JobScript, name: str) -> int | None:
    """Return the value of a torchrun flag as a number, if that is known; None for a range."""
    low, _, high = (launch.flags.get(name) or "").partition(":")
    return script.values.number(low) if high in ("", low) else None


def workers_of(launch: LaunchCommand, script: JobScript) -> int | None:
    """Return how many ranks one launcher starts on a node, if that is known."""
    if launch.starter == "deepspeed":
        return flag_number(launch, script, "num-gpus")
    if launch.starter == "accelerate":
        total = flag_number(launch, script, "num-processes")
        machines = flag_number(launch, script, "num-machines")
        if "num-machines" not in launch.flags:
            machines = 1 if script.asked.nodes == 1 else None
        return share(total, machines)
    if "nproc-per-node" in launch.flags:
        return flag_number(launch, script, "nproc-per-node")
    return None if script.sets("PET_NPROC_PER_NODE") or launch.hides else 1
