"""make_plan: the one place where a job and a site become decisions."""

from __future__ import annotations

from typing import cast

from hpc_train.errors import PlanError, UnknownNameError
from hpc_train.model.plan import Launch, LaunchPlan, LaunchRequest, Setting, Topology
from hpc_train.plans.binding import resolve_binding, with_binding
from hpc_train.plans.containers.resolve import check_launch, container_settings, container_setup
from hpc_train.plans.directives import resolve_directives
from hpc_train.plans.elastic import check_elastic, elastic_directives, elastic_settings
from hpc_train.plans.environment import resolve_env
from hpc_train.plans.gpus import check_gpus
from hpc_train.plans.launchers.base import Launcher
from hpc_train.plans.limits import check_limits
from hpc_train.plans.openmpi import check_openmpi
from hpc_train.plans.rendezvous import check_ports, rendezvous_settings
from hpc_train.plans.request import make_request
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
    env = resolve_env(job, site, topology)
    launcher = settings["launcher"].value
    bound = {**resolve_binding(job, site, topology), **_placement(topology, nested=nested)}
    request = with_binding(make_request(job, site, topology, env), bound, nested=nested)
    launch = _launch(job, launcher, request)
    setup = _setup(job, site)
    directives = resolve_directives(site, settings, topology, launch)
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
        directives=(*directives, *elastic_directives(request.elastic, topology.nodes)),
        env=tuple((name, str(setting.value)) for name, setting in env.items()),
        setup=tuple(setting.value for setting in setup.values()),
        launch=launch,
        settings={**settings, **bound, **_surroundings(job, site, env), **setup},
        warnings=(*warnings, *_doubts(site, topology, env, launcher)),
        nested=nested,
        container=request.container,
        elastic=request.elastic,
    )


def _surroundings(job: Job, site: Site, env: dict[str, Setting]) -> dict[str, Setting]:
    of_env = {f"env.{name}": setting for name, setting in env.items()}
    args = job.value.launcher_args
    words = Setting(value=list(args), origin=job.near("launcher_args"))
    torch = from_job(job, "torch") or from_site(site, "torch", site.value.torch)
    return {
        **({"launcher_args": words} if args else {}),
        **({"torch": torch} if torch else {}),
        **elastic_settings(job),
        **container_settings(job, site),
        **rendezvous_settings(site),
        **of_env,
    }


def _launch(job: Job, launcher: str, request: LaunchRequest) -> Launch:
    check_elastic(job, launcher)
    launch = cast(Launcher, load("launchers", launcher))(request)
    check_launch(job, request.container, launch, launcher)
    return launch


def _doubts(
    site: Site, topology: Topology, env: dict[str, Setting], launcher: str
) -> tuple[str, ...]:
    gpus, mpi = check_gpus(topology, launcher), check_openmpi(site, env, launcher)
    return (*gpus, *mpi, *check_ports(site))


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


def _placement(topology: Topology, *, nested: bool) -> dict[str, Setting]:
    nodes = f"{topology.nodes} nodes" if topology.nodes > 1 else "node"
    where = rule("nested", f"nested: the first {nodes} of the study's allocation")
    return {"placement": where} if nested else {}


def _setup(job: Job, site: Site) -> dict[str, Setting]:
    lines = [(line, site.origin(f"setup.{i}")) for i, line in enumerate(site.value.setup)]
    lines += container_setup(job, site)
    lines += [(line, job.origin(f"setup.{i}")) for i, line in enumerate(job.value.setup)]
    return {f"setup.{i}": Setting(value=v, origin=o) for i, (v, o) in enumerate(lines)}
