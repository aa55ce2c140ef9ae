"""Detection of the profile of this host."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase

from hpc_train.errors import HpcTrainError
from hpc_train.model.site_facilities import Detect
from hpc_train.model.value import Value
from hpc_train.probe.run_program import ABSENT, Ask, ask
from hpc_train.probe.scontrol_fields import settings, word
from hpc_train.sites.load import load_site
from hpc_train.sites.search import profile_files

_TIMEOUT_S = 10.0
_QUESTION = ("scontrol", "show", "config")


class Host(Value, frozen=True, kw_only=True):
    """Facts for detection: host names, Slurm's cluster if there is one, the environment.

    `problem` is the reason why an installed Slurm does not name its cluster.
    """

    names: tuple[str, ...]
    cluster: str
    env: Mapping[str, str]
    problem: str = ""


class Match(Value, frozen=True, kw_only=True):
    """A profile that matches, and why."""

    name: str
    reasons: tuple[str, ...]


class Detection(Value, frozen=True, kw_only=True):
    """The matching profiles, best first, and all profiles with rules for detection.

    `unread` lists errors of queries.
    """

    matches: tuple[Match, ...]
    known: tuple[str, ...]
    unread: tuple[str, ...] = ()


def this_host(question: Ask = ask) -> Host:
    """Query the machine and, if there is one, the scheduler."""
    answer = question(*_QUESTION, timeout_s=_TIMEOUT_S)
    cluster = word(settings(answer.text), "ClusterName")
    problem = "" if cluster else answer.problem or "it names no ClusterName"
    return Host(
        names=tuple(dict.fromkeys((socket.gethostname(), socket.getfqdn()))),
        cluster=cluster,
        env=dict(os.environ),
        problem="" if problem == ABSENT else problem,
    )


def detect_site(host: Host) -> Detection:
    """Compare a host with each profile that has rules for detection."""
    matches, known = [], []
    unread = [f"`{' '.join(_QUESTION)}`: {host.problem}"] if host.problem else []
    for path in profile_files():
        try:
            profile = load_site(str(path)).value
        except HpcTrainError as failure:
            unread.append(failure.message)
            continue
        if profile.detect is None:
            continue
        known.append(profile.name)
        reasons = tuple(_reasons(profile.detect, host))
        if reasons:
            matches.append(Match(name=profile.name, reasons=reasons))
    matches.sort(key=lambda match: -len(match.reasons))
    return Detection(matches=tuple(matches), known=tuple(known), unread=tuple(unread))


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
