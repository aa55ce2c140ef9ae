"""Does the job fit the site? What cannot run is refused, what is unwise is a warning."""

from __future__ import annotations

import re

from hpc_train.errors import PlanError, UnknownNameError
from hpc_train.model.partition import ANY
from hpc_train.model.plan import Setting, Topology
from hpc_train.plans.ceilings import ceilings
from hpc_train.plans.context import Job, Site, asked_at, on_partition, partition_of, with_qos
from hpc_train.plans.misfits import cores, misfits
from hpc_train.plans.partition_choice import fitting
from hpc_train.plans.queue_options import queue_of, written


def check_limits(job: Job, site: Site, topology: Topology) -> tuple[str, ...]:
    """Compare a job with what the profile knows of its queue; return the warnings.

    Raises:
        UnknownNameError: the site lists qualities of service and the job's is not among them.
        PlanError: more or less than the partition or the qos takes.
    """
    _check_qos(job, site)
    for misfit in misfits(job, site):
        hints = (_other_qos(job, site), _elsewhere(job, site))
        raise PlanError(misfit.said(job, site), "; or ".join(filter(None, hints)))
    found = partition_of(job, site)
    if found is None or site.value.scheduler != "local":
        return ()
    return tuple(
        f"{crowd.asked}, but {site.value.name} {crowd.who} {crowd.limit}: the ranks will share "
        "cores, so timings say little"
        for crowd in cores(site, topology, found)
    )


def check_required(job: Job, site: Site, settings: dict[str, Setting]) -> None:
    """Refuse a job that leaves out what the site wants to know.

    Raises:
        PlanError: with what to add.
    """
    account = site.value.account
    if account.required and "account" not in settings:
        raise _missing(job, site, "account", "account.required")
    if account.pattern is not None and "account" in settings:
        _check_account(job, site, account.pattern, settings)
    for index, key in enumerate(site.value.required):
        said = [settings.get(key), written(settings, key)]
        if not any(setting is not None and setting.value is not None for setting in said):
            raise _missing(job, site, key, f"required.{index}")


def _missing(job: Job, site: Site, key: str, rule: str) -> PlanError:
    account = site.value.account
    article = "an" if key == "account" else "a"
    like = f", such as {account.example}" if key == "account" and account.example else ""
    yours = f"; yours: {account.command}" if key == "account" and account.command else ""
    word = {"time": "1h", "mem": "100G"}.get(key, "NAME")
    listed = {
        "partition": [one.name for one in site.value.partitions],
        "qos": [one.name for one in site.value.qos],
    }
    names = [name for name in listed.get(key, []) if name != ANY]
    like += f"; known: {', '.join(names)}" if names else ""
    full, where = (key, "") if word == "NAME" else (f"resources.{key}", "'s resources")
    return PlanError(
        f"{asked_at(job, full)}{site.value.name} needs {article} {key}{like} ({site.near(rule)})",
        f"add `{key}: {word}` to the job{where}, or --set {key}={word}{yours}",
    )


def _check_account(job: Job, site: Site, pattern: str, settings: dict[str, Setting]) -> None:
    account, whole = site.value.account, written(settings, "account")
    names = [settings["account"].value, whole.value if whole else None]
    if any(name is not None and re.fullmatch(pattern, name) for name in names):
        return
    like = f"like {account.example}" if account.example else f"by {pattern}"
    raise PlanError(
        f"{asked_at(job, 'account')}account = {names[0]!r}, but {site.value.name}'s are named "
        f"{like} ({site.near('account.pattern')})",
        f"yours: {account.command}" if account.command else "",
    )


def _check_qos(job: Job, site: Site) -> None:
    """Refuse one that the site does not list."""
    name, names = job.value.qos, [qos.name for qos in site.value.qos]
    if name is None or not names:
        return
    if name not in names and ANY not in names:
        raise UnknownNameError(f"qos of {site.value.name}", name, names, job.origin("qos"))


def _other_qos(job: Job, site: Site) -> str:
    """Return the qualities of service with which the job would fit where it is."""
    queue = queue_of(job, site)
    now = queue.qos[1].name if queue.qos else None
    others = [qos.name for qos in site.value.qos if qos.name not in (now, ANY)]
    found = [name for name in others if not any(misfits(with_qos(job, name), site))]
    return f"fits: qos {', '.join(found)} (--qos NAME)" if found else ""


def _elsewhere(job: Job, site: Site) -> str:
    """Return the partitions that would take the job, with what they give it."""
    gpus, others = job.value.resources.gpus_per_node, site.value.partitions
    # Of a partition whose GPUs nobody knows, nothing is promised.
    known = (i for i in fitting(job, site) if not gpus or others[i].gpus_per_node is not None)
    found = (others[index].name for index in known)
    names = [f"{name}{_given(on_partition(job, name, ''), site)}" for name in found]
    return f"fits: {', '.join(names)} (--partition NAME)" if names else ""


def _given(job: Job, site: Site) -> str:
    nodes = job.value.resources.nodes
    queue = queue_of(job, site)
    most = {
        name: min((one.value for one in ceilings(name, queue, site, nodes)), default=None)
        for name in ("nodes", "time")
    }
    words = [f"{most['nodes']} nodes" if most["nodes"] else "", str(most["time"] or "")]
    shown = ", ".join(filter(None, words))
    return f" ({shown})" if shown else ""
