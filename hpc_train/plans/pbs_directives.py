"""Directives of PBS: chunks or a flat request, place, time, queue, project and output.

Sources: OpenPBS 23.06, qsub(1B) and pbs_resources(7B); what its commands answered.
"""

from __future__ import annotations

from hpc_train.base.errors import PlanError
from hpc_train.base.units import Memory
from hpc_train.jobs.job import Topology
from hpc_train.plans.plan import Launch, Setting
from hpc_train.plans.queue_limits import partition_named
from hpc_train.plans.resource_requests import value_in, word_in, written
from hpc_train.sites.profile import PbsDialect, SourcedSite

# Options of jobs that PBS does not have.
_OF_SLURM = ("qos", "constraint", "network")


def of_pbs(
    site: SourcedSite, settings: dict[str, Setting], topology: Topology, launch: Launch
) -> tuple[tuple[str, str], ...]:
    """Return options of qsub and resources of `-l`, in order.

    Raises:
        PlanError: the job has an option that PBS does not have.
    """
    _check(settings)
    dialect = site.value.pbs or PbsDialect()
    node = _of_node(site, settings, topology, launch)
    exclusive, limit = bool(value_in(settings, "exclusive")), value_in(settings, "time")
    place = dialect.place or ("scatter" if dialect.shape == "select" else None)
    if dialect.shape != "select":
        _check_totals(site, settings, node, topology)
    options: dict[str, str | None] = {
        "N": settings["name"].value,
        dialect.project[1:]: word_in(settings, "account"),
        "q": word_in(settings, "partition"),
        **_requested(node, dialect, topology),
        # Where the chunks lie, and whether the nodes are shared.
        "place": ":".join(filter(None, (place, "excl" * exclusive))) or None,
        # PBS has no days.
        "walltime": None
        if limit is None
        else f"{limit // 3600:02d}:{limit % 3600 // 60:02d}:{limit % 60:02d}",
        "j": "oe",
        "k": "doe" if dialect.live_output else None,
        # A start after the loss of a node would mix its measurements with those of the first.
        "r": None if "directives.r" in settings else "n",
    }
    return tuple((name, value) for name, value in options.items() if value is not None)


def _of_node(
    site: SourcedSite, settings: dict[str, Setting], topology: Topology, launch: Launch
) -> dict[str, int]:
    """Return what the job requests on each node; memory in mebibytes."""
    each, profile = topology.cpus_per_task, site.value
    asked, mem = profile.cpu_request == "allowed", value_in(settings, "mem")
    cores = each * topology.tasks_per_node if each and asked else 0
    gpus = topology.gpus_per_node if profile.gpu_request != "none" else 0
    counts = {
        "ncpus": cores,
        "mpiprocs": launch.slots_per_node if launch.slots_per_node > 1 else 0,
        "ngpus": gpus,
        "mem": int(mem) if isinstance(mem, Memory) else 0,
    }
    return {name: count for name, count in counts.items() if count}


def _requested(node: dict[str, int], dialect: PbsDialect, topology: Topology) -> dict[str, str]:
    """Return chunks; or the totals of the job, where there are none, nor processes of a chunk."""
    if dialect.shape == "select":
        words = [f"{name}={_amount(name, count)}" for name, count in node.items()]
        words += [f"{name}={value}" for name, value in dialect.chunk.items()]
        return {"select": ":".join((str(topology.nodes), *words))}
    totals = {name: _amount(name, count * topology.nodes) for name, count in node.items()}
    return {name: total for name, total in totals.items() if name != "mpiprocs"}


def _check_totals(
    site: SourcedSite, settings: dict[str, Setting], node: dict[str, int], topology: Topology
) -> None:
    """Refuse parts of several nodes: PBS may place the totals of a flat request on fewer nodes."""
    queue = written(settings, "partition")
    entry = partition_named(site.value, queue.value) if queue else None
    whole, cores = entry[1].cpus_per_node if entry else None, node.get("ncpus")
    if topology.nodes == 1 or queue is None or not (whole and cores) or cores == whole:
        return
    raise PlanError(
        f"{queue.origin}: {queue.value} has {whole} cores for each node, but the job needs {cores} "
        f"of each of {topology.nodes} nodes; PBS gets totals only, which fit fewer nodes",
        f"use whole nodes: tasks_per_node x cpus_per_task = {whole}; or one node",
    )


def _amount(name: str, count: int) -> str:
    if name != "mem":
        return str(count)
    return f"{count}mb" if count % 1024 else f"{count // 1024}gb"


def _check(settings: dict[str, Setting]) -> None:
    variables = settings.get("directives.v")
    if variables is not None:
        raise PlanError(
            f"{variables.origin}: directives.v has no effect: qsub is called with a -v of its own, "
            "which takes precedence",
            "env sets variables in the job",
        )
    for key in _OF_SLURM:
        setting = written(settings, key)
        if setting is not None and setting.value is not None:
            raise PlanError(
                f"{setting.origin}: {key} is an option of Slurm, and PBS has none like it",
                "leave it out; a queue is `partition`, a resource `directives: {l: NAME=VALUE}`",
            )
