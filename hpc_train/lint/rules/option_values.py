"""Rules on the values of options in directives: what sbatch refuses."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from hpc_train.lint.directives import Directive
from hpc_train.lint.option_parser import Option
from hpc_train.lint.option_values import (
    RefusedValue,
    ValueForm,
    is_unknown,
    refused_value,
    value_forms,
)
from hpc_train.lint.requested_resources import RequestedResources
from hpc_train.lint.rule import RuleHit, Subject, rule
from hpc_train.model.finding import Severity
from hpc_train.model.live_cluster import gres
from hpc_train.model.version_ranges import Version, older
from hpc_train.slurm_options import Grammar, sbatch_grammar
from hpc_train.slurm_versions import missing_option, unavailable_value

_AROUND_EQUALS = re.compile(r"--[a-z-]{1,40}(\s+=|=\s+[^\s-])")


def _options(subject: Subject) -> Iterator[Option]:
    """Yield the known options of directives that sbatch reads and can split."""
    for directive in subject.script.live_directives:
        if not directive.unclosed and not _is_cut(directive):
            yield from (option for option in directive.options if option.known)


def _is_cut(directive: Directive) -> bool:
    """Whether whitespace beside a `=` cuts a value off, which another rule reports."""
    return bool(_AROUND_EQUALS.search(directive.text))


@rule(
    "HT020",
    "error",
    "value that sbatch refuses",
    why="sbatch checks these values when it reads them and refuses the job; it silently ignores "
    "an unknown word in a list of mail types.",
    advice="write one of the allowed values; `man sbatch` explains them",
)
def refused(subject: Subject) -> Iterator[RuleHit]:
    for option in _options(subject):
        yield from refusals(option, "sbatch", value_forms())


def refusals(option: Option, program: str, forms: Mapping[str, ValueForm]) -> Iterator[RuleHit]:
    """Yield the hit of an option whose value `program` refuses or ignores."""
    value = option.value
    if value is None or (value == "" and option.name not in forms):
        return
    if not option.spelled.startswith("--") and value.startswith("="):
        return
    wrong = refused_value(option.name, value, forms)
    if wrong:
        yield RuleHit(
            line=option.line,
            message=_message(option, value, wrong, program),
            advice=f"allowed: {wrong.allowed}",
            severity="warning" if wrong.ignored else None,
        )


def _message(option: Option, value: str, wrong: RefusedValue, program: str) -> str:
    gap = "=" if option.spelled.startswith("--") else " "
    does = f"ignores {wrong.part}" if wrong.ignored else f"refuses {wrong.part!r}"
    # A word that lacks its list, `map_cpu:`, is the nearest to itself.
    meant = "" if wrong.nearest == wrong.part else wrong.nearest
    hint = f"; did you mean {meant}?" if meant else ""
    return f"{option.spelled}{gap}{value}: {program} {does}{hint}"


@rule(
    "HT021",
    "error",
    "option without its value, or with one that it does not take",
    why="sbatch refuses a job if an option has no value although it needs one, or has one although "
    "it takes none.",
    advice="write --option=value, or the bare option; `sbatch --help` lists both kinds",
)
def missing_value(subject: Subject) -> Iterator[RuleHit]:
    for option in _options(subject):
        yield from missing_or_extra(option, "sbatch", sbatch_grammar())


def missing_or_extra(option: Option, program: str, grammar: Grammar) -> Iterator[RuleHit]:
    """Yield the hit of an option without its value, or with one that it does not take."""
    kind = grammar.long.get(option.name)
    if kind == "=" and option.value is None:
        yield RuleHit(
            line=option.line,
            message=f"{option.spelled} needs a value",
            advice=f"write --{option.name}=VALUE",
        )
    elif kind == "" and option.value is not None and option.spelled.startswith("--"):
        # Options of a plug-in may change.
        if not re.match(r"(no-)?container-", option.name):
            message = f"{option.spelled} takes no value: {program} refuses {option.value!r}"
            yield RuleHit(line=option.line, message=message, advice=f"write --{option.name}")


@rule(
    "HT022",
    "error",
    "ambiguous option in a directive",
    why="sbatch completes the beginning of a name if it fits one option only, and otherwise "
    "refuses the job.",
    advice="write the whole name",
)
def ambiguous(subject: Subject) -> Iterator[RuleHit]:
    for directive in subject.script.live_directives:
        for option in directive.options:
            yield from ambiguities(option)


def ambiguities(option: Option) -> Iterator[RuleHit]:
    """Yield the hit of an ambiguous prefix."""
    if option.ambiguous:
        names = ", ".join(f"--{name}" for name in option.ambiguous)
        yield RuleHit(line=option.line, message=f"{option.spelled} is ambiguous: {names}")


_EXCLUSIVE_FROM = "26.05"
_GPUS_REQUIRED_FROM = "23.02"
_REQUESTS = ("gpus", "gpus-per-node", "gpus-per-task", "gpus-per-socket", "ntasks-per-gpu")
_TRES = ("gres", "tres-per-task")
_GPU = re.compile(r"\bgpu\b|[$<{]")


@rule(
    "HT023",
    "warning",
    "option or value that this version of Slurm does not have",
    why="sbatch and srun refuse an option, or a value of one, that their version does not have. "
    "The version is that of --slurm, or of the site's profile; without one, nothing is reported.",
    advice="leave it out, or write another value; hpctrain help slurm-versions lists the versions",
)
def missing(subject: Subject) -> Iterator[RuleHit]:
    version = subject.context.slurm
    if version is None:
        return
    for program, option in _every_option(subject):
        if option.known and (why := _missing(program, option, version)):
            yield RuleHit(line=option.line, message=f"{why}; this is Slurm {version}")


def _missing(program: str, option: Option, version: Version) -> str:
    value = option.value or ""
    why = missing_option(program, option.name, version)
    return why or ("" if is_unknown(value) else unavailable_value(option.name, value, version))


def _every_option(subject: Subject) -> Iterator[tuple[str, Option]]:
    for directive in subject.script.live_directives:
        yield from (("sbatch", option) for option in directive.options)
    for launch in subject.script.launches:
        if launch.outer == "srun":
            yield from (("srun", option) for option in launch.options)


@rule(
    "HT116",
    "info",
    "--gres=gpu and --gpus-per-node with equal numbers",
    why="The two options are the same request. Slurm accepts both until 25.11 if the numbers are "
    "equal, and refuses the job from 26.05 on.",
    advice="keep one; --gpus-per-node=N unless the site requires --gres=gpu:N",
)
def gpus_in_two_options(subject: Subject) -> Iterator[RuleHit]:
    version, asked = subject.context.slurm, subject.script.asked
    given, again = asked.value("gres") or "", asked.value("gpus-per-node")
    if again is None or not any(one.name == "gpu" for one in gres(given)):
        return
    if version is None or not older(version, _EXCLUSIVE_FROM):
        message = f"--gres={given} and --gpus-per-node={again}: Slurm refuses both from 26.05 on"
        severity: Severity | None = None if version is None else "error"
        line = asked.line("gres", "gpus-per-node")
        yield RuleHit(line=line, message=message, severity=severity)


@rule(
    "HT117",
    "warning",
    "--cpus-per-gpu or --mem-per-gpu without GPUs",
    why="Slurm refuses the job from 23.02 on (Invalid generic resource (gres) specification), also "
    "with --exclusive, unless the command line of sbatch requests GPUs.",
    advice="request GPUs, e.g. --gpus-per-node=N, or use --cpus-per-task and --mem",
)
def per_gpu_without_gpus(subject: Subject) -> Iterator[RuleHit]:
    version, asked = subject.context.slurm, subject.script.asked
    if _may_request_gpus(asked) or (version is not None and older(version, _GPUS_REQUIRED_FROM)):
        return
    for name in ("cpus-per-gpu", "mem-per-gpu"):
        if asked.has(name):
            message = f"--{name}={asked.value(name)}, but no GPUs: Slurm refuses it from 23.02 on"
            yield RuleHit(line=asked.line(name), message=message)


def _may_request_gpus(asked: RequestedResources) -> bool:
    """Return whether an option requests GPUs, or has a placeholder that may stand for them."""
    return asked.has(*_REQUESTS) or any(_GPU.search(asked.value(name) or "") for name in _TRES)
