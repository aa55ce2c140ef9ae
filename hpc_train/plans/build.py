"""make_plan: the one place where a job and a site become decisions."""

from __future__ import annotations

import shlex
from typing import cast

from hpc_train.errors import PlanError, UnknownNameError
from hpc_train.model.plan import LaunchPlan, LaunchRequest, Setting, Topology
from hpc_train.plans.directives import resolve_directives
from hpc_train.plans.environment import resolve_environment
from hpc_train.plans.launchers.base import Launcher
from hpc_train.plans.limits import check_limits
from hpc_train.plans.resolve import Job, Site, default, from_job, from_site, partition_of, rule
from hpc_train.plans.topology import resolve_topology
from hpc_train.registry import load, names

_TEMPLATES = {"local": "local.sh.j2", "slurm": "slurm.sbatch.j2"}


def make_plan(job: Job, site: Site, *, nested: bool = False) -> LaunchPlan:
    """Resolve a job for a site; the same input gives the same plan.

    With `nested` the job is planned for the first nodes of an allocation that may be larger.

    Raises:
        UnknownNameError: the launcher or the partition does not exist.
        PlanError: the site forbids the launcher, or the job does not fit.
    """
    _check_placement(site, nested=nested)
    topology, settings = resolve_topology(job, site)
    warnings = check_limits(job, site, topology)
    settings = {**_identity(job, site), **settings, **_requests(job, site)}
    launcher = settings["launcher"].value
    environment = resolve_environment(job, site, topology, launcher)
    request = _request(job, site, topology, environment.exported, nested=nested)
    launch = cast(Launcher, load("launchers", launcher))(request)
    setup = _setup(job, site, environment.script)
    settings |= _placement(topology) if nested else {}
    settings |= {**_rendezvous(site), **environment.settings, **setup}
    return LaunchPlan(
        name=job.value.name,
        site=site.value.name,
        scheduler=site.value.scheduler,
        template=_TEMPLATES[site.value.scheduler],
        launcher=launcher,
        topology=topology,
        time_s=int(settings["time"].value) if "time" in settings else None,
        rendezvous=site.value.rendezvous,
        workdir=job.value.workdir,
        directives=resolve_directives(site, settings, topology, launch),
        env=environment.env,
        setup=tuple(setting.value for setting in setup.values()),
        launch=launch,
        settings=settings,
        warnings=(*warnings, *environment.warnings),
        nested=nested,
        changes=environment.changes,
        backend=environment.backend,
    )


def _request(
    job: Job, site: Site, topology: Topology, exported: tuple[str, ...], *, nested: bool
) -> LaunchRequest:
    return LaunchRequest(
        topology=topology,
        command=job.value.command,
        scheduler=site.value.scheduler,
        srun_args=site.value.launchers.srun_args,
        mpi=site.value.launchers.mpi,
        exported=exported,
        gpu_request=site.value.gpu_request,
        nested=nested,
    )


def _identity(job: Job, site: Site) -> dict[str, Setting]:
    name = Setting(value=job.value.name, origin=job.origin("name"))
    command = Setting(value=list(job.value.command), origin=job.origin("command"))
    return {"name": name, "command": command, "launcher": _launcher(job, site)}


def _launcher(job: Job, site: Site) -> Setting:
    launchers = site.value.launchers
    chosen = from_job(job, "launcher") or Setting(
        value=launchers.default, origin=site.origin("launchers.default"), why="the site's default"
    )
    name = chosen.value
    if name in launchers.forbidden:
        raise PlanError(
            f"{chosen.origin}: {site.value.name} forbids {name}: {launchers.forbidden[name]}",
            f"allowed: {', '.join(launchers.allowed)}",
        )
    if name in launchers.allowed:
        return chosen
    if name not in names("launchers"):
        raise UnknownNameError("launcher", name, launchers.allowed, chosen.origin)
    raise PlanError(
        f"{chosen.origin}: {site.value.name} does not offer {name}; "
        f"allowed: {', '.join(launchers.allowed)}"
    )


def _requests(job: Job, site: Site) -> dict[str, Setting]:
    given = {
        "time": from_job(job, "resources.time"),
        "mem": from_job(job, "resources.mem"),
        "exclusive": from_job(job, "resources.exclusive"),
        "account": from_job(job, "account"),
        "partition": from_job(job, "partition") or _partition(job, site),
        "qos": from_job(job, "qos"),
        "constraint": from_job(job, "constraint"),
        "workdir": from_job(job, "workdir") or default(None, "where you submit"),
    }
    return {key: setting for key, setting in given.items() if setting is not None}


def _partition(job: Job, site: Site) -> Setting | None:
    found = partition_of(job, site)
    if found is None:
        return None
    return from_site(site, f"partitions.{found[0]}.name", found[1].name, "the site's default")


def _check_placement(site: Site, *, nested: bool) -> None:
    if nested and site.value.scheduler != "slurm":
        raise PlanError(
            f"placement nested needs one allocation for all runs, which {site.value.name} "
            "does not have",
            "leave placement out: independent is the default",
        )


def _placement(topology: Topology) -> dict[str, Setting]:
    nodes = f"{topology.nodes} nodes" if topology.nodes > 1 else "node"
    return {"placement": rule("nested", f"nested: the first {nodes} of the study's allocation")}


def _rendezvous(site: Site) -> dict[str, Setting]:
    meeting = site.value.rendezvous
    free = f"first free one of {meeting.ports}, tried on rank 0's host when the job starts"
    host = Setting(value=meeting.host + meeting.suffix, origin=site.origin("rendezvous.host"))
    port = Setting(value=meeting.port, origin=site.origin("rendezvous.port"), why=free)
    return {"rendezvous.host": host, "rendezvous.port": port}


def _setup(job: Job, site: Site, script: str | None) -> dict[str, Setting]:
    """Put the vendor's script behind the site's lines, which load what it needs."""
    lines = _lines(site)
    if script is not None:
        why = "the vendor's own settings, which nobody should repeat"
        value = f"source {shlex.quote(script)}"
        lines.append(Setting(value=value, origin=site.near("network.script"), why=why))
    return {f"setup.{i}": line for i, line in enumerate([*lines, *_lines(job)])}


def _lines(sourced: Job | Site) -> list[Setting]:
    lines = enumerate(sourced.value.setup)
    return [Setting(value=line, origin=sourced.origin(f"setup.{i}")) for i, line in lines]
