"""Rules on `#PBS` lines: what qsub refuses, ignores, or reads otherwise than it is meant."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hpc_train.errors import nearest
from hpc_train.lint.pbs_directives import WITH_VALUE, PbsOption
from hpc_train.lint.pbs_request import CHUNK_RESOURCES, PbsRequest, walltime_seconds
from hpc_train.lint.placeholders import is_placeholder
from hpc_train.lint.rule import RuleHit, Subject, rule

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


def _request(subject: Subject) -> PbsRequest | None:
    return subject.script.pbs


@rule(
    "HT901",
    "error",
    "#PBS after the first command",
    why="qsub reads directives only up to the first command of a script; later lines are comments.",
    advice="move the line above the first command",
)
def late_directive(subject: Subject) -> Iterator[RuleHit]:
    request = _request(subject)
    for line in request.directives.late if request else ():
        yield RuleHit(line=line, message="qsub does not read this line")


@rule(
    "HT928",
    "warning",
    "#PBS in a line that continues one",
    why="qsub joins a line that ends in a backslash with the next one as it is, and takes its #PBS "
    "for a comment: it reads no option after it.",
    advice="remove the backslash, so that each is a line of its own",
)
def marked_continuation(subject: Subject) -> Iterator[RuleHit]:
    request = _request(subject)
    for line in request.directives.marked if request else ():
        yield RuleHit(line=line, message="this line continues one, and qsub does not read it")


@rule(
    "HT902",
    "error",
    "option that qsub does not know",
    why="qsub refuses the job with `directive error` or `invalid option`. Options of sbatch and of "
    "Torque are not options of PBS.",
    advice="options are single letters: -N, -q, -A, -l, -j, -k, -o",
)
def unknown_option(subject: Subject) -> Iterator[RuleHit]:
    request = _request(subject)
    if request is None:
        return
    for option in request.directives.options:
        if not option.known and not is_placeholder(option.letter):
            yield _unknown(option)
        elif option.letter in WITH_VALUE and not option.value:
            yield RuleHit(line=option.line, message=f"-{option.letter} without a value")
    for line, word in request.directives.stray:
        if not is_placeholder(word):
            blank = " A resource has no blanks around its =." if "=" in word else ""
            yield RuleHit(line=line, message=f"{word!r} is not an option.{blank}")


def _unknown(option: PbsOption) -> RuleHit:
    name = option.letter.partition("=")[0]
    dashes = "--" if len(name) > 1 else "-"
    meant = _MEANT.get(name)
    near = nearest(name, tuple(_MEANT)) if meant is None and len(name) > 2 else ""
    return RuleHit(
        line=option.line,
        message=f"qsub has no option {dashes}{name}{near}",
        advice=f"write {meant}" if meant else None,
    )


@rule(
    "HT903",
    "error",
    "misspelt resource of -l",
    why="qsub refuses a resource that the server does not have. Sites add resources of their own, "
    "so that only names that resemble PBS's own are reported.",
    advice="write the resource as pbs_resources(7B) names it",
)
def misspelt_resource(subject: Subject) -> Iterator[RuleHit]:
    request = _request(subject)
    if request is None:
        return
    known = (*CHUNK_RESOURCES, *_JOB_RESOURCES)
    for one in request.resources:
        near = nearest(one.name, known) if one.name not in known else ""
        if near:
            yield RuleHit(line=one.line, message=f"-l {one.name}{near}")
    select = request.resource("select")
    for name in {name for chunk in request.chunks for name in chunk.resources}:
        near = nearest(name, CHUNK_RESOURCES) if name not in (*CHUNK_RESOURCES, *_OF_SITES) else ""
        if near and select is not None:
            yield RuleHit(line=select.line, message=f"select: {name}{near}")


@rule(
    "HT904",
    "error",
    "value that qsub refuses",
    why="qsub refuses another value of -j, -k, -r, -m or -N. An array has two indices at least; "
    "lists such as 2,4 and 1-1 are refused.",
    advice="correct the value",
)
def refused_value(subject: Subject) -> Iterator[RuleHit]:
    request = _request(subject)
    for option in request.directives.options if request else ():
        if "$" in option.value or is_placeholder(option.value) or not option.value:
            continue
        if option.letter in _VALUES:
            pattern, allowed = _VALUES[option.letter]
            if not pattern.fullmatch(option.value):
                message = f"-{option.letter} {option.value}: allowed are {allowed}"
                yield RuleHit(line=option.line, message=message)
        elif option.letter == "J" and not _is_array(option.value):
            message = f"-J {option.value}: an array is FIRST-LAST[:STEP][%RUNNING]"
            yield RuleHit(line=option.line, message=message)


def _is_array(text: str) -> bool:
    match = _ARRAY.fullmatch(text)
    return match is not None and int(match[1]) < int(match[2])


@rule(
    "HT905",
    "error",
    "form of -l select",
    why="select is a number of chunks, each with resources after colons: "
    "`select=2:ncpus=32:ngpus=4`. qsub refuses other forms; after a comma another resource of the "
    "job begins, and ppn belongs to the older `-l nodes=`.",
    advice="write -l select=NODES:ncpus=CORES:ngpus=GPUS",
)
def form_of_select(subject: Subject) -> Iterator[RuleHit]:
    request = _request(subject)
    select = request.resource("select") if request else None
    if request is None or select is None:
        return
    if not select.value:
        yield RuleHit(line=select.line, message="select without a value: no blanks around =")
    for chunk in request.chunks:
        if is_placeholder(chunk.text) or "$" in chunk.text:
            continue
        wrong = [
            name for name, value in chunk.resources.items() if name[:1].isalpha() and not value
        ]
        if "ppn" in chunk.resources:
            message = f"select={chunk.text}: a chunk has no ppn; ranks are mpiprocs, cores ncpus"
            yield RuleHit(line=select.line, message=message)
        elif wrong:
            message = f"select={chunk.text}: {wrong[0]!r} has no value"
            yield RuleHit(line=select.line, message=message)
        elif chunk.count == 0:
            yield RuleHit(line=select.line, message=f"select={chunk.text}: no chunk is requested")
        elif chunk.count is None:
            message = f"select={chunk.text}: a chunk is NUMBER:RESOURCE=VALUE:…"
            yield RuleHit(line=select.line, message=message)


@rule(
    "HT906",
    "error",
    "walltime that PBS reads otherwise",
    why="PBS reads [[HH:]MM:]SS: a number alone is seconds, and with one colon it is minutes and "
    "seconds. Days and units are refused.",
    advice="write hours, minutes and seconds: -l walltime=24:00:00",
)
def form_of_walltime(subject: Subject) -> Iterator[RuleHit]:
    request = _request(subject)
    found = request.resource("walltime") if request else None
    text = (found.value or "").strip() if found else ""
    if found is None or "$" in text or is_placeholder(text):
        return
    seconds = walltime_seconds(text)
    if seconds is None:
        yield RuleHit(line=found.line, message=f"walltime={text}: PBS refuses it")
    elif text.count(":") < 2:
        minutes, rest = divmod(seconds, 60)
        message = f"walltime={text} is {minutes} min {rest} s"
        yield RuleHit(line=found.line, message=message, severity="info")


@rule(
    "HT907",
    "error",
    "select together with totals",
    why="A job requests chunks (`-l select=2:ncpus=8`) or totals (`-l ncpus=16`); qsub refuses "
    'both: `"-lresource=" cannot be used with "select" or "place"`.',
    advice="write the resources of a node after select=N, with colons",
)
def select_with_totals(subject: Subject) -> Iterator[RuleHit]:
    request = _request(subject)
    if request is None or request.resource("select") is None:
        return
    for name in ("nodes", "ncpus", "ngpus", "mpiprocs", "ompthreads", "mem"):
        total = request.resource(name)
        if total is not None:
            yield RuleHit(line=total.line, message=f"-l select and -l {name}")
