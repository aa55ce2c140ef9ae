"""The `#SBATCH` lines of a script, as sbatch reads them, and the resources that they request."""

from __future__ import annotations

import re
from collections.abc import Iterable

from hpc_train.base.shell import Word
from hpc_train.base.slurm_options import Grammar, gres
from hpc_train.base.value import Value
from hpc_train.lint.options import Option, is_template_line, read_options, without_blanks

MARKER = "#SBATCH"


class Directive(Value, frozen=True, kw_only=True):
    """One `#SBATCH` line; sbatch ignores a `late` one, and rejects a job with `stray` words.

    `group` counts the `#SBATCH hetjob` lines before it, `unclosed` is an unterminated quote.
    """

    line: int
    text: str
    options: tuple[Option, ...]
    stray: tuple[str, ...] = ()
    unclosed: str = ""
    late: bool = False
    group: int = 0


def read_directives(
    lines: tuple[str, ...], grammar: Grammar, inner: frozenset[int]
) -> tuple[Directive, ...]:
    """Return all directives in order, except those on `inner` lines: the text of another script."""
    stop, found, group = first_command(lines), [], 0
    for number, line in enumerate(lines, 1):
        late = 0 < stop < number
        if not line.startswith(MARKER) or (late and number in inner):
            continue
        words, unclosed = split_directive(without_blanks(line[len(MARKER) :]))
        if words[:1] in (["hetjob"], ["packjob"]):
            group += 1
            continue
        made = [Word(raw=word, text=word, line=number) for word in words]
        options: list[Option] = []
        stray: list[str] = []
        index = 0
        while index < len(made):
            read, index = read_options(made, grammar, index, unknown_takes_word=True)
            options += read
            stray += [word.text for word in made[index : index + 1]]
            index += 1
        found.append(
            Directive(
                line=number,
                text=line[len(MARKER) :],
                options=tuple(options),
                stray=tuple(stray),
                unclosed=unclosed,
                late=late,
                group=group,
            )
        )
    return tuple(found)


def first_command(lines: tuple[str, ...]) -> int:
    """Return the line at which sbatch stops reading directives; 0 when there is none."""
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if text and not text.startswith("#") and not is_template_line(line):
            return number
    return 0


_PART = re.compile(r"\\(.)|\\$|(['\"])|(\s+)|(#)|([^\\'\"\s#]+)", re.DOTALL)


def split_directive(text: str) -> tuple[list[str], str]:
    """Split at blanks, heeding quotes and backslashes; `#` ends it, even inside a word."""
    words: list[str] = []
    word: str | None = None
    quote = ""
    for match in _PART.finditer(text):
        escaped, mark, blank, comment, plain = match.groups()
        if quote:
            if mark == quote:
                quote = ""
            else:
                word = (word or "") + (escaped or match[0])
        elif mark:
            quote, word = mark, word or ""
        elif comment:
            break
        elif blank:
            words += [] if word is None else [word]
            word = None
        else:
            word = (word or "") + (escaped or plain or "")
    return words + ([] if word is None else [word]), quote


class RequestedResources(Value, frozen=True, kw_only=True):
    """The effective options (the last of each name) and the sizes that follow from them.

    `batch` is false for a script without directives: its options are on the command line of sbatch.
    """

    batch: bool
    options: dict[str, Option]
    nodes: int | None = None
    tasks: int | None = None
    tasks_per_node: int | None = None
    cpus_per_task: int | None = None
    gpus_per_node: int | None = None

    def has(self, *names: str) -> bool:
        """Return whether any of these options is given."""
        return any(name in self.options for name in names)

    def value(self, name: str) -> str | None:
        """Return the value of an option; None without it."""
        return self.options[name].value if name in self.options else None

    @property
    def gpus(self) -> bool:
        """Whether an option requests GPUs."""
        named = self.has("gpus", "gpus-per-node", "gpus-per-task", "gpus-per-socket")
        return named or "gpu" in (self.value("gres") or "").replace("gpu:0", "")

    def line(self, *names: str) -> int:
        """Return the line of the last of these options; 1 if none is given."""
        lines = [self.options[name].line for name in names if name in self.options]
        return max(lines, default=1)

    @property
    def slurm(self) -> dict[str, int]:
        """The variables that Slurm will set, as far as they are known."""
        known = {
            "SLURM_NNODES": self.nodes,
            "SLURM_JOB_NUM_NODES": self.nodes,
            "SLURM_NTASKS": self.tasks,
            "SLURM_NPROCS": self.tasks,
            "SLURM_NTASKS_PER_NODE": self.tasks_per_node,
            "SLURM_TASKS_PER_NODE": self.tasks_per_node if self.nodes == 1 else None,
            "SLURM_CPUS_PER_TASK": self.cpus_per_task,
            "SLURM_GPUS_ON_NODE": self.gpus_per_node,
            "SLURM_GPUS_PER_NODE": _number(self.value("gpus-per-node")),
        }
        return {name: value for name, value in known.items() if value is not None}


def asked_of(directives: Iterable[Directive]) -> RequestedResources:
    """Read the sizes; a heterogeneous job has none, because its components differ."""
    directives = tuple(directives)
    if any(directive.group for directive in directives):
        return RequestedResources(batch=True, options={})
    options = {o.name: o for d in directives if not d.late for o in d.options}
    bare = RequestedResources(batch=bool(directives), options=options)
    if not directives:
        return bare
    nodes = _nodes(bare)
    tasks, per_node = _tasks(bare, nodes)
    return RequestedResources(
        batch=True,
        options=options,
        nodes=nodes,
        tasks=tasks,
        tasks_per_node=per_node,
        cpus_per_task=_number(bare.value("cpus-per-task")),
        gpus_per_node=_gpus(bare, nodes),
    )


def _number(text: str | None) -> int | None:
    match = re.fullmatch(r"^\s*(\d{1,9})\s*", text or "")
    return int(match[1]) if match else None


def _nodes(asked: RequestedResources) -> int | None:
    if asked.has("nodes"):
        low, _, high = (asked.value("nodes") or "").partition("-")
        return _number(low) if high in ("", low) else None
    spread = ("ntasks", "nodelist", "gpus", "ntasks-per-gpu", "gpus-per-task", "nodefile")
    return None if asked.has(*spread) and _number(asked.value("ntasks")) != 1 else 1


def _tasks(asked: RequestedResources, nodes: int | None) -> tuple[int | None, int | None]:
    if asked.has("ntasks-per-gpu", "gpus-per-task", "ntasks-per-socket") and not asked.has(
        "ntasks", "ntasks-per-node"
    ):
        return None, None
    tasks, per_node = _number(asked.value("ntasks")), _number(asked.value("ntasks-per-node"))
    if asked.has("ntasks-per-node"):
        total = nodes * per_node if nodes and per_node else None
        return (tasks if asked.has("ntasks") else total), per_node
    if asked.has("ntasks"):
        even = tasks is not None and nodes and tasks % nodes == 0
        return tasks, tasks // nodes if even and tasks and nodes else None
    return nodes, 1


def _gpus(asked: RequestedResources, nodes: int | None) -> int | None:
    if asked.has("gpus-per-node"):
        return gpu_count(asked.value("gpus-per-node") or "")
    if "gpu" in (asked.value("gres") or ""):
        gpus = [one.count for one in gres(asked.value("gres") or "") if one.name == "gpu"]
        return sum(gpus) if gpus else None
    if asked.has("gpus"):
        total = gpu_count(asked.value("gpus") or "")
        return total // nodes if total and nodes and total % nodes == 0 else None
    return None


def gpu_count(text: str) -> int | None:
    """Read `4` or `a100:4`."""
    return _number(text.rpartition(":")[2])
