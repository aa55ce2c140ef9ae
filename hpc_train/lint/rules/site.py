"""Rules on the site: partitions, limits and prohibitions of its profile."""

from __future__ import annotations

from collections.abc import Iterator

from hpc_train.errors import nearest
from hpc_train.lint.launch_commands import LaunchCommand
from hpc_train.lint.partition_match import (
    excesses,
    has_open_partitions,
    known_partitions,
    queue_of,
    selected_otherwise,
)
from hpc_train.lint.placeholders import is_placeholder
from hpc_train.lint.rule import RuleHit, Subject, rule
from hpc_train.model.finding import Severity
from hpc_train.model.site import SiteProfile
from hpc_train.registry import find_batch_system
from hpc_train.timed_regex import whole_match

_SIMILAR: Severity = "info"
# A bare srun also starts other launchers, and python is none.
_NAMED_LAUNCHERS = ("mpirun", "torchrun", "accelerate", "deepspeed")


def _site(subject: Subject) -> SiteProfile | None:
    site = subject.context.site
    return (
        site
        if site and find_batch_system(site.scheduler).steps and subject.script.asked.batch
        else None
    )


@rule(
    "HT701",
    "error",
    "unknown partition",
    why="sbatch refuses a job for a partition that does not exist. If the profile allows other "
    "partitions than those that it names, only a similar name is reported. If it describes "
    "partitions that a constraint or an account selects, it does not know Slurm's names for them.",
    advice="name one of the site's partitions",
)
def unknown_partition(subject: Subject) -> Iterator[RuleHit]:
    site, asked = _site(subject), subject.script.asked
    given = asked.value("partition")
    names = known_partitions(site) if site else ()
    if site is None or not names or not given or "$" in given:
        return
    others = selected_otherwise(site)
    if others:
        yield from _not_by_partition(site, given.split(","), others, asked.line("partition"))
        return
    is_open = has_open_partitions(site)
    for name in given.split(","):
        near = nearest(name, names)
        if name not in names and not is_placeholder(name) and (near or not is_open):
            message = f"{site.name} has no partition {name!r}{near}"
            advice = f"known: {', '.join(sorted(names))}"
            line, severity = asked.line("partition"), _SIMILAR if is_open else None
            yield RuleHit(line=line, message=message, advice=advice, severity=severity)


def _not_by_partition(
    site: SiteProfile, given: list[str], others: tuple[str, ...], line: int
) -> Iterator[RuleHit]:
    for name in given:
        if name in others and name not in known_partitions(site):
            message = f"jobs on {site.name} select {name} by constraint or account"
            advice = f"hpctrain site show {site.name} prints what selects it"
            yield RuleHit(line=line, message=message, advice=advice, severity=_SIMILAR)


@rule(
    "HT702",
    "error",
    "request above a limit of the site",
    why="A job that requests more nodes, GPUs, cores, memory or time than the partition or the "
    "quality of service allows is refused, or waits forever.",
    advice="request less, or choose a partition with higher limits",
)
def over_the_limit(subject: Subject) -> Iterator[RuleHit]:
    site, asked = _site(subject), subject.script.asked
    if site is None:
        return
    for excess in excesses(asked, queue_of(site, asked)):
        there = [f"--{name}" for name in excess.options if asked.has(name)]
        shown = excess.shown or (asked.value(there[0][2:]) if there else excess.wanted)
        limit = " ".join(filter(None, (f"has at most {excess.most}", excess.note)))
        message = f"{' x '.join(there)}: {shown}, but {excess.who} {limit}"
        yield RuleHit(line=asked.line(*excess.options), message=message)


@rule(
    "HT703",
    "error",
    "launcher that the site forbids",
    why="According to the site's profile, this launcher cannot or must not be used there. A "
    "launcher that the profile neither allows nor forbids is a warning.",
    advice="use one of the launchers that the profile allows",
)
def forbidden_launcher(subject: Subject) -> Iterator[RuleHit]:
    site = subject.context.site
    if site is None:
        return
    words = site.launchers
    others = [name for name in words.allowed if name not in (*words.forbidden, *words.warned)]
    advice = f"use {' or '.join(others)}" if others else None
    for launch in subject.script.launches:
        for name in _launchers(launch, site):
            if name in words.forbidden:
                message = f"{site.name} forbids {name}: {words.forbidden[name]}"
                yield RuleHit(line=launch.line, message=message, advice=advice)
            elif name in words.warned:
                message = f"{site.name} advises against {name}: {words.warned[name]}"
                yield RuleHit(line=launch.line, message=message, advice=advice, severity="warning")
            elif name in _NAMED_LAUNCHERS and name not in words.allowed:
                message = f"the profile of {site.name} does not offer {name}"
                yield RuleHit(line=launch.line, message=message, advice=advice, severity="warning")


def _launchers(launch: LaunchCommand, site: SiteProfile) -> tuple[str, ...]:
    """Return the launchers of a command; on PBS, an MPI may start the agents of another one."""
    program = launch.command.program.rpartition("/")[2]
    outer = program if program in site.launchers.allowed else launch.outer
    if site.pbs is not None and launch.starter in _NAMED_LAUNCHERS:
        return (launch.starter,)
    return tuple(dict.fromkeys((outer, launch.starter)))


@rule(
    "HT704",
    "warning",
    "no account",
    why="The site refuses jobs without an account, unless SBATCH_ACCOUNT is set at submission.",
    advice="add #SBATCH --account=NAME",
)
def no_account(subject: Subject) -> Iterator[RuleHit]:
    site, asked = _site(subject), subject.script.asked
    required = site and (site.account.required or "account" in site.required)
    if site and required and not asked.has("account"):
        yield RuleHit(line=1, message=f"{site.name} requires an account")


@rule(
    "HT705",
    "error",
    "memory where the site forbids it",
    why="The site allocates memory with the nodes, GPUs or cores, and refuses jobs that request "
    "it.",
    advice="leave the option out",
)
def memory_forbidden(subject: Subject) -> Iterator[RuleHit]:
    site, asked = _site(subject), subject.script.asked
    for name in ("mem", "mem-per-cpu", "mem-per-gpu"):
        if site and site.mem_request == "forbidden" and asked.has(name):
            yield RuleHit(line=asked.line(name), message=f"{site.name} forbids --{name}")


@rule(
    "HT706",
    "warning",
    "GPUs requested with another option than the site's",
    why="Sites differ in the option that requests GPUs; another option is refused there, or "
    "allocates none.",
    advice="use the option of the site's profile",
)
def other_gpu_request(subject: Subject) -> Iterator[RuleHit]:
    site, asked = _site(subject), subject.script.asked
    if site is None:
        return
    ways = [name for name in ("gpus-per-node", "gpus", "gpus-per-task") if asked.has(name)]
    gres = "gpu" in (asked.value("gres") or "")
    if site.gpu_request == "gres" and ways and not gres:
        kind = "TYPE:" if site.gpu_request_typed else ""
        message = f"{site.name} requests GPUs with --gres=gpu:{kind}N"
        yield RuleHit(line=asked.line(*ways), message=message)
    if site.gpu_request == "none":
        for name in (*ways, *(["gres"] if gres else [])):
            message = f"--{name}: the partitions of {site.name} allocate GPUs without an option"
            yield RuleHit(line=asked.line(name), message=message, advice="leave the option out")


@rule(
    "HT707",
    "error",
    "option that the site requires is missing",
    why="The site refuses jobs without this option, regardless of Slurm's own default.",
    advice="add the option, or set its variable SBATCH_… at submission",
)
def required_option(subject: Subject) -> Iterator[RuleHit]:
    site, asked = _site(subject), subject.script.asked
    if site is None:
        return
    wanted: dict[str, tuple[str, ...]] = {key: (key,) for key in site.required if key != "account"}
    if "mem" in wanted or site.mem_request == "required":
        wanted["mem"] = ("mem", "mem-per-cpu", "mem-per-gpu")
    for key, names in wanted.items():
        if not asked.has(*names):
            yield RuleHit(line=1, message=f"{site.name} requires --{key}")


@rule(
    "HT708",
    "error",
    "option that the site forbids",
    why="According to the site's profile, its scheduler refuses this option, or the option is "
    "harmful.",
    advice="leave the option out",
)
def forbidden_option(subject: Subject) -> Iterator[RuleHit]:
    site, asked = _site(subject), subject.script.asked
    if site is None:
        return
    reasons = {name.lstrip("-"): why for name, why in site.forbidden.items()}
    if site.cpu_request == "forbidden":
        why = "cores come with the nodes or GPUs"
        reasons = {"cpus-per-task": why, "cpus-per-gpu": why, **reasons}
    for name, why in reasons.items():
        if asked.has(name):
            yield RuleHit(line=asked.line(name), message=f"{site.name} refuses --{name}: {why}")


@rule(
    "HT709",
    "warning",
    "account that does not match the site's pattern",
    why="The site's accounts have a common form; sbatch refuses an unknown account.",
    advice="use the name of your project's account",
)
def foreign_account(subject: Subject) -> Iterator[RuleHit]:
    site, asked = _site(subject), subject.script.asked
    pattern, name = site.account.pattern if site else None, asked.value("account")
    if site is None or not pattern or not name or "$" in name or is_placeholder(name):
        return
    if not whole_match(pattern, name, ignore_case=True):
        like = site.account.example or pattern
        message = f"account {name!r}, but the accounts of {site.name} are of the form {like}"
        yield RuleHit(line=asked.line("account"), message=message)
