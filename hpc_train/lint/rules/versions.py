"""Rules on what differs between versions of Slurm."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hpc_train.lint.option_parser import Option
from hpc_train.lint.option_values import is_unknown
from hpc_train.lint.requested_resources import RequestedResources
from hpc_train.lint.rule import RuleHit, Subject, rule
from hpc_train.model.finding import Severity
from hpc_train.model.live_cluster import gres
from hpc_train.model.version_ranges import Version, older
from hpc_train.slurm_versions import missing_option, unavailable_value

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
    for program, option in _options(subject):
        if option.known and (why := _missing(program, option, version)):
            yield RuleHit(line=option.line, message=f"{why}; this is Slurm {version}")


def _missing(program: str, option: Option, version: Version) -> str:
    value = option.value or ""
    why = missing_option(program, option.name, version)
    return why or ("" if is_unknown(value) else unavailable_value(option.name, value, version))


def _options(subject: Subject) -> Iterator[tuple[str, Option]]:
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
