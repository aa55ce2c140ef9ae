"""Detection of the profile of this host."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path

from hpc_train.base.errors import HpcTrainError
from hpc_train.base.run_program import Ask, ask
from hpc_train.base.value import Value
from hpc_train.sites.detected import Match, Scheduler
from hpc_train.sites.facilities import Detect
from hpc_train.sites.load import load_site
from hpc_train.sites.schedulers import QUESTION, find_scheduler
from hpc_train.sites.search import layer_of, profiles_with


class Host(Value, frozen=True, kw_only=True):
    """Facts for detection: host names, the scheduler and Slurm's cluster, the environment.

    `problem` is the reason why an installed Slurm does not name its cluster.
    """

    names: tuple[str, ...]
    cluster: str
    env: Mapping[str, str]
    problem: str = ""
    scheduler: Scheduler | None = None


class Detection(Value, frozen=True, kw_only=True):
    """The matching profiles, best first, and all profiles with rules for detection.

    The best has the most reasons; of two with as many, one that is not shipped with hpctrain.
    `variables` are those that the rules compare.

    `unread` lists errors of queries.
    """

    matches: tuple[Match, ...]
    known: tuple[str, ...]
    unread: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()


def this_host(question: Ask = ask) -> Host:
    """Query the machine and, if there is one, the scheduler."""
    env = dict(os.environ)
    scheduler, problem = find_scheduler(env, question)
    return Host(
        names=tuple(dict.fromkeys((socket.gethostname(), socket.getfqdn()))),
        cluster=scheduler.cluster if scheduler is not None and scheduler.kind == "Slurm" else "",
        env=env,
        problem=problem,
        scheduler=scheduler,
    )


def detect_site(host: Host) -> Detection:
    """Compare a host with each profile that has rules for detection."""
    matches: list[Match] = []
    known: list[str] = []
    variables: set[str] = set()
    unread = [f"`{' '.join(QUESTION)}`: {host.problem}"] if host.problem else []
    for path in profiles_with("detect"):
        if layer_of(path) == "here" and not _is_ours(path):
            unread.append(f"{path}: left out, as it belongs to another user: --site {path} uses it")
            continue
        try:
            profile = load_site(path).value
        except HpcTrainError as failure:
            unread.append(failure.message)
            continue
        if profile.detect is None:
            continue
        known.append(profile.name)
        variables.update(profile.detect.env)
        reasons = tuple(_reasons(profile.detect, host))
        if reasons:
            match = Match(
                name=profile.name,
                reasons=reasons,
                scheduler=profile.scheduler,
                shipped=layer_of(path) == "shipped",
            )
            matches.append(match)
    return Detection(
        matches=tuple(sorted(matches, key=Match.rank)),
        known=tuple(known),
        unread=tuple(unread),
        variables=tuple(sorted(variables)),
    )


def _is_ours(path: Path) -> bool:
    """Whether a profile of this folder may be used unasked: its setup lines run in the job."""
    return path.stat().st_uid in (os.geteuid(), 0)


def _reasons(detect: Detect, host: Host) -> Iterator[str]:
    for name, pattern in detect.env.items():
        if fnmatchcase(host.env.get(name, ""), pattern) and name in host.env:
            yield f"{name}={host.env[name]}"
    if host.cluster in detect.clusters:
        yield f"ClusterName {host.cluster}"
    for pattern in detect.hosts:
        for name in host.names:
            if fnmatchcase(name, pattern):
                yield f"host {name}"
