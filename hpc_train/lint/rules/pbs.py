"""Rules on jobs of PBS: `#PBS` lines, output, folder, environment, how the ranks are started."""

import re
from collections.abc import Iterator
from itertools import takewhile

from hpc_train.base.errors import nearest
from hpc_train.lint.directives import is_placeholder
from hpc_train.lint.pbs import (
    CHUNK_RESOURCES,
    WITH_VALUE,
    WITHOUT_VALUE,
    PbsRequest,
    walltime_seconds,
)
from hpc_train.lint.rule import RuleHit, Subject, rule
from hpc_train.lint.rules.header import like_marker
from hpc_train.lint.rules.srun_and_mpi import OTHER_MPI, OWN_PLACES, ranks_wanted

# Options of sbatch and of Torque -> what qsub of PBS has.
_MEANT = {
    "nodes": "-l select=N",
    "ntasks": "-l select=N:mpiprocs=M",
    "ntasks-per-node": "-l select=N:mpiprocs=M",
    "cpus-per-task": "-l select=N:ncpus=M",
    "gres": "-l select=N:ngpus=M",
    "gpus-per-node": "-l select=N:ngpus=M",
    "mem": "-l select=N:mem=M",
    "time": "-l walltime=HH:MM:SS",
    "job-name": "-N",
    "partition": "-q",
    "account": "-A or -P",
    "output": "-o",
    "error": "-e",
    "array": "-J",
    "t": "-J",
    "d": "cd in the script",
    "w": "cd in the script",
}
_JOB_RESOURCES = (
    *("select", "place", "walltime", "min_walltime", "max_walltime", "soft_walltime", "nodes"),
    *("cput", "pcput", "file", "pmem", "pvmem", "nice", "software"),
)
# Of sites, and near those of PBS.
_OF_SITES = ("model",)
_VALUES = {
    "j": (re.compile(r"oe|eo|n"), "oe, eo or n"),
    "k": (re.compile(r"n|d?[oe]{1,2}|[oe]{1,2}d|[oe]d[oe]"), "doe, oe, o, e or n"),
    "r": (re.compile(r"[yn]"), "y or n"),
    "m": (re.compile(r"n|j?[abe]{1,3}j?"), "n, or some of a, b and e"),
    "N": (re.compile(r"[!-&(-~]{1,230}"), "up to 230 characters without blanks and quotes"),
}
_ARRAY = re.compile(r"(\d{1,9})-(\d{1,9})(?::0*[1-9]\d{0,8})?(?:%0*[1-9]\d{0,8})?")


@rule(
    "HT901", "error", "#PBS after the first command", advice="move the line above the first command"
)
def late_directive(subject: Subject) -> Iterator[RuleHit]:
    for line in subject.script.pbs.late:
        yield RuleHit(line, "qsub does not read this line")


@rule(
    "HT902",
    "error",
    "option that qsub does not know",
    advice="options are single letters: -N, -q, -A, -l, -j, -k, -o",
)
def unknown_option(subject: Subject) -> Iterator[RuleHit]:
    request = subject.script.pbs
    for option in request.options:
        is_known = len(option.name) == 1 and option.name in WITHOUT_VALUE + WITH_VALUE
        if not is_known and not is_placeholder(option.name):
            name = option.name.partition("=")[0]
            dashes = "--" if len(name) > 1 else "-"
            meant = _MEANT.get(name)
            near = nearest(name, tuple(_MEANT)) if meant is None and len(name) > 2 else ""
            message = f"qsub has no option {dashes}{name}{near}"
            advice = f"write {meant}" if meant else None
            yield RuleHit(option.line, message, advice=advice)
        elif option.name in WITH_VALUE and not option.value:
            yield RuleHit(option.line, f"-{option.name} without a value")
    for line, word in request.stray:
        if not is_placeholder(word):
            why = " A resource has no blanks around its =." if "=" in word else ""
            why = " A comment needs a line of its own." if word.startswith("#") else why
            yield RuleHit(line, f"{word!r} is not an option.{why}")


@rule(
    "HT903",
    "error",
    "misspelt resource of -l",
    advice="write the resource as pbs_resources(7B) names it",
)
def misspelt_resource(subject: Subject) -> Iterator[RuleHit]:
    request = subject.script.pbs
    known = (*CHUNK_RESOURCES, *_JOB_RESOURCES)
    for one in request.resources:
        near = nearest(one.name, known) if one.name not in known else ""
        if near:
            yield RuleHit(one.line, f"-l {one.name}{near}")
    select = request.resource("select")
    for name in {name for chunk in request.chunks for name in chunk.resources}:
        near = nearest(name, CHUNK_RESOURCES) if name not in (*CHUNK_RESOURCES, *_OF_SITES) else ""
        if near and select is not None:
            yield RuleHit(select.line, f"select: {name}{near}")


@rule("HT904", "error", "value that qsub refuses", advice="correct the value")
def refused_value(subject: Subject) -> Iterator[RuleHit]:
    for option in subject.script.pbs.options:
        if "$" in option.value or is_placeholder(option.value) or not option.value:
            continue
        if option.name in _VALUES:
            pattern, allowed = _VALUES[option.name]
            if not pattern.fullmatch(option.value):
                message = f"-{option.name} {option.value}: allowed are {allowed}"
                yield RuleHit(option.line, message)
        elif option.name == "J":
            match = _ARRAY.fullmatch(option.value)
            if match is not None and int(match[1]) < int(match[2]):
                continue
            message = f"-J {option.value}: an array is FIRST-LAST[:STEP][%RUNNING]"
            yield RuleHit(option.line, message)


@rule("HT905", "error", "form of -l select", advice="write -l select=NODES:ncpus=CORES:ngpus=GPUS")
def form_of_select(subject: Subject) -> Iterator[RuleHit]:
    request = subject.script.pbs
    select = request.resource("select")
    if select is None:
        return
    if not select.value:
        yield RuleHit(select.line, "select without a value: no blanks around =")
    for chunk in request.chunks:
        if is_placeholder(chunk.text) or "$" in chunk.text:
            continue
        wrong = [
            name for name, value in chunk.resources.items() if name[:1].isalpha() and not value
        ]
        if "ppn" in chunk.resources:
            message = f"select={chunk.text}: a chunk has no ppn; ranks are mpiprocs, cores ncpus"
            yield RuleHit(select.line, message)
        elif wrong:
            yield RuleHit(select.line, f"select={chunk.text}: {wrong[0]!r} has no value")
        elif chunk.count == 0:
            yield RuleHit(select.line, f"select={chunk.text}: no chunk is requested")
        elif chunk.count is None:
            yield RuleHit(select.line, f"select={chunk.text}: a chunk is NUMBER:RESOURCE=VALUE:…")


@rule(
    "HT906",
    "error",
    "walltime that PBS reads otherwise",
    advice="write hours, minutes and seconds: -l walltime=24:00:00",
)
def form_of_walltime(subject: Subject) -> Iterator[RuleHit]:
    request = subject.script.pbs
    found = request.resource("walltime")
    text = found.value.strip() if found else ""
    if found is None or "$" in text or is_placeholder(text):
        return
    seconds = walltime_seconds(text)
    if seconds is None:
        yield RuleHit(found.line, f"walltime={text}: PBS refuses it")
    elif text.count(":") < 2:
        minutes, rest = divmod(seconds, 60)
        yield RuleHit(found.line, f"walltime={text} is {minutes} min {rest} s", severity="info")


@rule("HT929", "warning", "memory in bytes", advice="write the unit: mem=64gb")
def memory_in_bytes(subject: Subject) -> Iterator[RuleHit]:
    request = subject.script.pbs
    select = request.resource("select")
    found = [(one.name, one.value, one.line) for one in request.resources]
    for chunk in request.chunks if select else ():
        found += [(name, value, select.line) for name, value in chunk.resources.items() if select]
    for name, value, line in found:
        if name in ("mem", "vmem", "pmem", "pvmem") and re.fullmatch(r"\d{1,7}", value):
            yield RuleHit(line, f"{name}={value} is {value} bytes")


_OPEN_MPI = re.compile(r"open-?mpi|ompi|hpcx|--?mca|--bind-to|--map-by|PBS_NODEFILE", re.IGNORECASE)
_RELATIVE = re.compile(r"[^/$~ -][^ ]{0,999}\.(?:py|sh)|\.(?:py|sh)")
_PROGRAMS = ("python", "bash", "sh", "torchrun", "accelerate", "./", "../", "/")


@rule(
    "HT908",
    "info",
    "no output until the job ends",
    advice="add #PBS -k doe and #PBS -j oe; the file of -o is then written while the job runs",
)
def output_at_the_end(subject: Subject) -> Iterator[RuleHit]:
    script, request, site = subject.script, subject.script.pbs, subject.context.site
    if not request or not script.launches or request.option("I"):
        return
    if site is not None and site.pbs is not None and not site.pbs.live_output:
        return
    if request.resource("filesystems") is not None:
        # ALCF, whose jobs name their file systems, sets -k doe for all of them.
        return
    commands = (*script.runs("exec", "tee"), *(launch.command for launch in script.launches))
    redirected = any(one.redirects or one.ending == "|" for one in commands)
    if request.option("k") is None and not redirected:
        line = next((one.line for one in request.options if one.name in "oej"), 1)
        yield RuleHit(line, "PBS writes the log at the end of the job")


@rule(
    "HT910",
    "warning",
    "no cd to the folder of the submission",
    advice='add cd "$PBS_O_WORKDIR" || exit 1 before the first command',
)
def no_change_of_folder(subject: Subject) -> Iterator[RuleHit]:
    script, request = subject.script, subject.script.pbs
    if not request or request.resource("wd") or request.option("I"):
        return
    folders = [command.line for command in script.runs("cd", "pushd")]
    for launch in script.launches:
        word = next((one.text for one in launch.words if _RELATIVE.fullmatch(one.text)), "")
        if word and not any(line <= launch.line for line in folders):
            yield RuleHit(launch.line, f"{word} is looked for in the home folder")
            return


@rule(
    "HT916",
    "warning",
    "misspelt #PBS",
    advice="write #PBS at the beginning of the line, or ##PBS to disable the line",
    fixable=True,
)
def misspelt_marker(subject: Subject) -> Iterator[RuleHit]:
    yield from like_marker(subject, "#PBS", "qsub")


@rule(
    "HT913",
    "error",
    "ranks that do not fit the request",
    advice="request mpiprocs for each rank of a node: -l select=2:ncpus=32:mpiprocs=4",
)
def ranks_and_slots(subject: Subject) -> Iterator[RuleHit]:
    script, request = subject.script, subject.script.pbs
    for launch in script.launches:
        if launch.outer != "mpirun":
            continue
        # The words of mpirun before the program that it starts.
        texts = list(takewhile(lambda text: not text.startswith(_PROGRAMS), launch.texts))
        ranks, slots = ranks_wanted(texts, script), request.ranks
        if ranks is None or slots is None or OWN_PLACES.search(" ".join(texts)):
            continue
        named = _OPEN_MPI.search(script.text)
        other = OTHER_MPI.search(script.text) or any("file" in text for text in texts)
        if ranks > slots and (named or (launch.command.program == "mpirun" and not other)):
            found = f"{slots} slot{'' if slots == 1 else 's'} (mpiprocs)"
            message = f"{ranks} ranks, but the request has {found}"
            message += "" if named else ", and Open MPI starts no more"
            yield RuleHit(launch.line, message, severity=None if named else "warning")


@rule(
    "HT914",
    "error",
    "srun in a job of PBS",
    advice="start ranks with mpiexec or mpirun, or with torchrun on each node",
)
def srun_on_pbs(subject: Subject) -> Iterator[RuleHit]:
    script = subject.script
    for launch in script.launches if script.only_pbs else ():
        if launch.outer == "srun" and not script.around(launch.command):
            yield RuleHit(launch.line, "srun belongs to Slurm")


@rule("HT915", "info", "chunks may share a node", advice="add #PBS -l place=scatter")
def chunks_packed(subject: Subject) -> Iterator[RuleHit]:
    request = subject.script.pbs
    select = request.resource("select")
    if select is None or request.resource("place") is not None:
        return
    if (request.nodes or 1) > 1 and not _whole(subject, request):
        yield RuleHit(select.line, f"{request.nodes} chunks without place=scatter")


def _whole(subject: Subject, request: PbsRequest) -> bool:
    """Whether a chunk has all cores of a node of the site, or the queue gives whole nodes."""
    site = subject.context.site
    if site is None:
        return False
    queue = request.option("q")
    partition = next((one for one in site.partitions if queue and one.name == queue.value), None)
    cores = request.chunks[0].number("ncpus")
    return site.cpu_request == "forbidden" or (
        partition is not None and cores is not None and cores == partition.cpus_per_node
    )
