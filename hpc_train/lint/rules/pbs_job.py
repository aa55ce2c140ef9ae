"""Rules on jobs of PBS: output, folder, environment, and how the ranks are started."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hpc_train.lint.directives import MARKER
from hpc_train.lint.job_script import JobScript
from hpc_train.lint.launch_commands import LaunchCommand
from hpc_train.lint.pbs_request import PbsRequest
from hpc_train.lint.rule import RuleHit, Subject, rule
from hpc_train.lint.shell.ast import Command
from hpc_train.model.finding import Severity

_OPEN_MPI = re.compile(r"open-?mpi|ompi|hpcx|--?mca|--bind-to|--map-by|PBS_NODEFILE", re.IGNORECASE)
_OWN_SLOTS = re.compile(r"oversubscribe|overload|ppr:|(?:^| )--?(?:host|H|npernode|N)\b")
_PROGRAMS = ("python", "bash", "sh", "torchrun", "accelerate", "./", "../", "/")
# A near miss of #PBS, before an option.
_LIKE_MARKER = re.compile(r"([ \t]{0,20}#[ \t]{0,4}PBS)[ \t]{1,20}-{1,2}[A-Za-z]", re.IGNORECASE)
_RANKS, _PER_NODE = ("-n", "-np", "--np", "--n"), ("-ppn", "--ppn", "-N", "--npernode")


@rule(
    "HT908",
    "warning",
    "no output until the job ends",
    why="PBS keeps the output of a job on its node and copies it at the end: nothing can be read "
    "while the job runs, and after the loss of the node there is none.",
    advice="add #PBS -k doe and #PBS -j oe; the file of -o is then written while the job runs",
)
def output_at_the_end(subject: Subject) -> Iterator[RuleHit]:
    script, request, site = subject.script, subject.script.pbs, subject.context.site
    if request is None or not script.launches or request.directives.last("I"):
        return
    if site is not None and site.pbs is not None and not site.pbs.live_output:
        return
    if request.resource("filesystems") is not None:
        # ALCF, whose jobs name their file systems, sets -k doe for all of them.
        return
    redirected = any(one.redirects or one.ending == "|" for one in _output_commands(script))
    if request.directives.last("k") is None and not redirected:
        line = next((one.line for one in request.directives.options if one.letter in "oej"), 1)
        yield RuleHit(line=line, message="PBS writes the log at the end of the job")


def _output_commands(script: JobScript) -> Iterator[Command]:
    yield from script.runs("exec", "tee")
    for launch in script.launches:
        yield launch.command


@rule(
    "HT909",
    "warning",
    "pbsdsh hides failures",
    why="pbsdsh ends with 0 although a task failed, so that the job is COMPLETED; its tasks also "
    "have none of the variables that the script exports.",
    advice="start a process on each node with pbs_tmrsh, mpiexec or mpirun",
)
def pbsdsh_hides(subject: Subject) -> Iterator[RuleHit]:
    for command in subject.script.runs("pbsdsh"):
        yield RuleHit(line=command.line, message="pbsdsh does not return the failure of a task")


@rule(
    "HT910",
    "warning",
    "no cd to the folder of the submission",
    why="A job of PBS starts in the home folder, not in the folder in which qsub was called.",
    advice='add cd "$PBS_O_WORKDIR" || exit 1 before the first command',
)
def no_change_of_folder(subject: Subject) -> Iterator[RuleHit]:
    script, request = subject.script, subject.script.pbs
    if request is None or request.resource("wd") or request.directives.last("I"):
        return
    folders = [command.line for command in script.runs("cd", "pushd")]
    for launch in script.launches:
        word = next((one.text for one in launch.words if _is_relative(one.text)), "")
        if word and not any(line <= launch.line for line in folders):
            yield RuleHit(line=launch.line, message=f"{word} is looked for in the home folder")
            return


def _is_relative(text: str) -> bool:
    return text.endswith((".py", ".sh")) and text[0] not in "/$~-" and " " not in text


@rule(
    "HT911",
    "warning",
    "-V passes the whole environment",
    why="The job then depends on the shell that submits it, and every variable can be read with "
    "qstat; some values make its JSON unreadable.",
    advice="load modules and set variables in the script; pass single ones with -v NAME",
)
def whole_environment(subject: Subject) -> Iterator[RuleHit]:
    request = subject.script.pbs
    option = request.directives.last("V") if request else None
    if option is not None:
        yield RuleHit(line=option.line, message="the job gets all variables of the shell")


@rule(
    "HT912",
    "warning",
    "#SBATCH and #PBS in one script",
    why="qsub ignores #SBATCH lines, while sbatch reads #PBS lines, too: what one scheduler gets "
    "is not what the other one gets.",
    advice="keep one script for each scheduler; hpctrain render writes both from one job file",
)
def two_schedulers(subject: Subject) -> Iterator[RuleHit]:
    script = subject.script
    if script.pbs is not None and script.directives:
        first = script.directives[0].line
        yield RuleHit(line=first, message=f"{MARKER} beside #PBS")


@rule(
    "HT916",
    "warning",
    "misspelt #PBS",
    why="qsub reads only lines that begin with exactly #PBS; #pbs, # PBS and an indented #PBS are "
    "comments, and the job runs with defaults. # PBS beside directives is only an info, because "
    "it may disable the line on purpose.",
    advice="write #PBS at the beginning of the line, or ##PBS to disable the line",
)
def misspelt_marker(subject: Subject) -> Iterator[RuleHit]:
    script = subject.script
    for number, line in enumerate(script.lines, 1):
        match = _LIKE_MARKER.match(line)
        if match is None or match[1] == "#PBS" or number in script.inner_lines:
            continue
        disabled = " " in match[1].strip() and script.pbs is not None
        severity: Severity | None = "info" if disabled else None
        message = f"`{match[1].strip()}` is a comment to qsub"
        if match[1][0].isspace() and match[1].strip() == "#PBS":
            message = "an indented #PBS is a comment to qsub"
        yield RuleHit(line=number, message=message, severity=severity)


@rule(
    "HT913",
    "error",
    "ranks that do not fit the request",
    why="Open MPI starts as many ranks as $PBS_NODEFILE has lines, one for each mpiprocs of a "
    "chunk, and refuses more; without mpiprocs a chunk has one. Cray's mpiexec starts --ppn ranks "
    "on each node.",
    advice="request mpiprocs for each rank of a node: -l select=2:ncpus=32:mpiprocs=4",
)
def ranks_and_slots(subject: Subject) -> Iterator[RuleHit]:
    script, request = subject.script, subject.script.pbs
    if request is None:
        return
    for launch in script.launches:
        if launch.outer != "mpirun":
            continue
        texts = _own_words(launch)
        ranks, each = _number(script, texts, _RANKS), _number(script, texts, _PER_NODE)
        if ranks is None:
            continue
        nodes, slots = request.nodes, request.ranks
        if each is not None:
            if nodes is not None and ranks > nodes * each:
                of_nodes = f"{nodes} node{'' if nodes == 1 else 's'}"
                message = f"{ranks} ranks, but {of_nodes} with {each} each"
                yield RuleHit(line=launch.line, message=message)
        elif slots is not None and not _OWN_SLOTS.search(" ".join(texts)):
            yield from _compared(launch, ranks, slots, _certainty(script))


def _certainty(script: JobScript) -> Severity:
    """Only Open MPI is known to refuse more ranks than slots."""
    return "error" if _OPEN_MPI.search(script.text) else "warning"


def _compared(
    launch: LaunchCommand, ranks: int, slots: int, severity: Severity
) -> Iterator[RuleHit]:
    if ranks > slots:
        found = f"{slots} slot{'' if slots == 1 else 's'} (mpiprocs)"
        message = f"{ranks} ranks, but the request has {found}"
        yield RuleHit(line=launch.line, message=message, severity=severity)


def _own_words(launch: LaunchCommand) -> list[str]:
    """Return the words of mpirun before the program that it starts."""
    texts = [word.text for word in launch.words]
    found = (index for index, text in enumerate(texts) if text.startswith(_PROGRAMS))
    end = next(found, len(texts))
    return texts[:end]


def _number(script: JobScript, texts: list[str], names: tuple[str, ...]) -> int | None:
    for word, following in zip(texts, [*texts[1:], ""], strict=False):
        name, sign, value = word.partition("=")
        if name in names:
            return script.values.number(value if sign else following)
    return None


@rule(
    "HT914",
    "error",
    "srun in a job of PBS",
    why="srun starts steps of a job of Slurm; in a job of PBS it is absent, or waits for an "
    "allocation.",
    advice="start ranks with mpiexec or mpirun, or with torchrun on each node",
)
def srun_on_pbs(subject: Subject) -> Iterator[RuleHit]:
    script = subject.script
    if script.pbs is None or script.directives:
        return
    for launch in script.launches:
        if launch.outer == "srun" and not script.around(launch.command):
            yield RuleHit(line=launch.line, message="srun belongs to Slurm")


@rule(
    "HT915",
    "info",
    "chunks may share a node",
    why="PBS packs the chunks of a job onto as few nodes as possible, so that two chunks may be "
    "on one node, and `torchrun --nnodes 2` waits forever. Where a chunk is a whole node, this "
    "is harmless.",
    advice="add #PBS -l place=scatter",
)
def chunks_packed(subject: Subject) -> Iterator[RuleHit]:
    request = subject.script.pbs
    select = request.resource("select") if request else None
    if request is None or select is None or request.resource("place") is not None:
        return
    if (request.nodes or 1) > 1 and not _whole(subject, request):
        yield RuleHit(line=select.line, message=f"{request.nodes} chunks without place=scatter")


def _whole(subject: Subject, request: PbsRequest) -> bool:
    """Whether a chunk has all cores of a node of the site, or the queue gives whole nodes."""
    site = subject.context.site
    if site is None:
        return False
    queue = request.directives.last("q")
    partition = next((one for one in site.partitions if queue and one.name == queue.value), None)
    cores = request.chunks[0].number("ncpus")
    return site.cpu_request == "forbidden" or (
        partition is not None and cores is not None and cores == partition.cpus_per_node
    )
