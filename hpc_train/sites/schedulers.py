"""The scheduler of this machine, from files and variables; if these are silent, from `scontrol`.

A slurm.conf makes this machine a part of a cluster even while the controller is down. Programs
alone, as a package of a distribution installs them, do not: without a configuration there is no
controller that they could ask.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from hpc_train.base.regularfile import read_regular
from hpc_train.base.run_program import ABSENT, Ask, ask
from hpc_train.sites.detected import CONF_FILES, PBS_FILES, Scheduler
from hpc_train.sites.scontrol_fields import settings, word

QUESTION = ("scontrol", "show", "config")
_COMMAND = f"`{' '.join(QUESTION)}`"
_TIMEOUT_S = 10.0
# A command without any configuration says so instead.
_CONFIGURED = "unable to contact slurm controller"
_CLUSTER = re.compile(
    rb"^[ \t]*ClusterName[ \t]*=[ \t]*([\w.-]{1,256})", re.IGNORECASE | re.MULTILINE
)
# A slurm.conf with all nodes of a large cluster has some 100 kB.
_LARGEST = 16 << 20


def find_scheduler(env: Mapping[str, str], question: Ask = ask) -> tuple[Scheduler | None, str]:
    """Return the scheduler of this machine, and why an installed Slurm names no cluster."""
    slurm, problem = _slurm(env, question)
    return slurm or next(_others(env), None), problem


def conf_file(env: Mapping[str, str]) -> Path | None:
    """Return the slurm.conf of this shell, even if it does not exist, or of this machine."""
    given = env.get("SLURM_CONF")
    return Path(given) if given else next(filter(Path.is_file, CONF_FILES), None)


def cluster_name(conf: Path) -> str:
    """Return the ClusterName in a slurm.conf; empty without one, or if it cannot be read."""
    try:
        found = _CLUSTER.search(read_regular(conf, _LARGEST))
    except OSError:
        return ""
    return found[1].decode() if found else ""


def _slurm(env: Mapping[str, str], question: Ask) -> tuple[Scheduler | None, str]:
    if name := env.get("SLURM_CLUSTER_NAME"):
        return Scheduler(kind="Slurm", cluster=name, evidence="SLURM_CLUSTER_NAME"), ""
    conf = conf_file(env)
    if conf is not None and (name := cluster_name(conf)):
        return Scheduler(kind="Slurm", cluster=name, evidence=f"ClusterName in {conf}"), ""
    answer = question(*QUESTION, timeout_s=_TIMEOUT_S)
    name = word(settings(answer.text), "ClusterName")
    problem = "" if name else answer.problem or "it names no ClusterName"
    if name:
        return Scheduler(kind="Slurm", cluster=name, evidence=f"ClusterName of {_COMMAND}"), ""
    if conf is not None:
        return Scheduler(kind="Slurm", evidence=_silent(conf, env)), problem
    if _CONFIGURED in problem.lower():
        return Scheduler(kind="Slurm", evidence=f"{_COMMAND}: {problem}"), problem
    return None, "" if problem == ABSENT else problem


def _silent(conf: Path, env: Mapping[str, str]) -> str:
    """Return the evidence of a slurm.conf from which no name was read."""
    place = f"SLURM_CONF={conf}" if env.get("SLURM_CONF") else str(conf)
    return place if os.access(conf, os.R_OK) else f"{place}, which cannot be read"


def _others(env: Mapping[str, str]) -> Iterator[Scheduler]:
    """Yield other schedulers: a command that submits, and the configuration that it needs."""
    if shutil.which("qsub"):
        files = [Path(env["PBS_CONF_FILE"])] if env.get("PBS_CONF_FILE") else PBS_FILES
        for file in filter(Path.is_file, files):
            yield Scheduler(kind="PBS", evidence=f"qsub, {file}")
        if env.get("SGE_ROOT"):
            evidence = f"qsub, SGE_ROOT={env['SGE_ROOT']}"
            yield Scheduler(kind="Grid Engine", evidence=evidence)
    if shutil.which("bsub") and env.get("LSF_ENVDIR"):
        yield Scheduler(kind="LSF", evidence=f"bsub, LSF_ENVDIR={env['LSF_ENVDIR']}")
