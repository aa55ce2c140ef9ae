"""make_plan: the one place where a job and a site become decisions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from hpc_train.errors import PlanError
from hpc_train.model.plan import Launch, LaunchPlan, LaunchRequest, Setting, Topology
from hpc_train.model.value import Value
from hpc_train.plans.arguments import check_arguments
from hpc_train.plans.binding import resolve_binding, with_binding
from hpc_train.plans.containers.resolve import check_launch, container_settings
from hpc_train.plans.context import Job, Site, from_job, from_site, rule
from hpc_train.plans.directives import resolve_directives
from hpc_train.plans.elastic import check_elastic, elastic_directives, elastic_settings
from hpc_train.plans.environment import JobEnvironment, resolve_environment
from hpc_train.plans.explanations import directive_notes
from hpc_train.plans.extra import extra_directives, extra_settings
from hpc_train.plans.forbidden import check_forbidden
from hpc_train.plans.gpus import check_gpus
from hpc_train.plans.launch_request import make_request
from hpc_train.plans.launcher import launcher_warnings, resolve_launcher
from hpc_train.plans.launchers.base import Launcher
from hpc_train.plans.limits import check_limits
from hpc_train.plans.memory import memory_warnings
from hpc_train.plans.network_context import network_of
from hpc_train.plans.openmpi import check_openmpi
from hpc_train.plans.partition_choice import choose_partition
from hpc_train.plans.preflight import preflight_settings, resolve_preflight
from hpc_train.plans.rendezvous import check_ports, rendezvous_settings
from hpc_train.plans.resource_requests import request_settings
from hpc_train.plans.secrets import resolve_secrets, secret_settings
from hpc_train.plans.setup import setup_settings, values_of
from hpc_train.plans.site_defaults import custom_settings, custom_warnings
from hpc_train.plans.storage import with_storage
from hpc_train.plans.time_limit_signal import (
    check_signal,
    passes_signal,
    signal_directives,
    signal_settings,
)
from hpc_train.plans.topology import resolve_topology
from hpc_train.registry import load

_TEMPLATES = {"local": "local.sh.j2", "slurm": "slurm.sbatch.j2"}


def make_plan(job: Job, site: Site, *, nested: bool = False) -> LaunchPlan:
    """Resolve a job for a site; the same input gives the same plan.

    With `nested` the job is planned for the first nodes of an allocation that may be larger.

    Raises:
        UnknownNameError: the launcher or the partition does not exist.
        PlanError: the site forbids the launcher, or the job does not fit.
    """
    _check_placement(site, nested=nested)
    job, partition = choose_partition(job, site)
    topology, settings = resolve_topology(job, site)
    warnings = (
        *check_limits(job, site, topology),
        *memory_warnings(job, site),
        *check_signal(job, site, nested=nested),
    )
    requests = request_settings(job, site, topology, partition)
    settings = {**_identity(job, site), **settings, **requests}
    launcher = settings["launcher"].value
    environment = resolve_environment(job, site, topology, launcher)
    check_elastic(job, launcher)
    bound = resolve_binding(job, site, topology)
    request = with_binding(make_request(job, site, topology, environment), bound, nested=nested)
    launch = cast(Launcher, load("launchers", launcher))(request)
    check_launch(job, request.container, launch, launcher)
    check_arguments(job, request, launch)
    if nested:
        settings["placement"] = _placement(topology)
    return _assemble(
        job,
        site,
        _Decisions(
            request=request,
            launch=launch,
            environment=environment,
            settings={**settings, **bound, **_inside(job, site, environment)},
            warnings=(*warnings, *_warnings(job, site, topology, environment)),
        ),
    )


def _warnings(
    job: Job, site: Site, topology: Topology, environment: JobEnvironment
) -> Iterator[str]:
    launcher = resolve_launcher(job, site)
    yield from custom_warnings(job, site)
    yield from launcher_warnings(launcher, site)
    yield from environment.warnings
    yield from check_gpus(topology, launcher.value)
    yield from check_openmpi(site, environment.variables, launcher.value)
    yield from check_ports(site)


class _Decisions(Value, frozen=True, kw_only=True):
    """What was decided, each in its own place."""

    request: LaunchRequest
    launch: Launch
    environment: JobEnvironment
    settings: dict[str, Setting]
    warnings: tuple[str, ...]


def _assemble(job: Job, site: Site, made: _Decisions) -> LaunchPlan:
    settings, topology = made.settings, made.request.topology
    directives = _directives(job, site, made)
    return LaunchPlan(
        name=job.value.name,
        site=site.value.name,
        scheduler=site.value.scheduler,
        template=site.value.template or _TEMPLATES[site.value.scheduler],
        launcher=settings["launcher"].value,
        topology=topology,
        time_s=int(settings["time"].value) if "time" in settings else None,
        rendezvous=site.value.rendezvous,
        workdir=job.value.workdir,
        directives=directives,
        notes=directive_notes(directives, settings),
        env=made.environment.env,
        changes=made.environment.changes,
        backend=made.environment.backend,
        modules_purge=site.value.modules_purge,
        modules_use=values_of("modules_use", settings),
        modules=values_of("modules", settings),
        setup=values_of("setup", settings),
        comment=job.value.comment or "",
        launch=made.launch,
        settings=settings,
        warnings=made.warnings,
        nested=made.request.nested,
        secrets=resolve_secrets(job),
        preflight=resolve_preflight(site, made.request, network_of(job, site)),
        container=made.request.container,
        elastic=made.request.elastic,
        passes_signal=passes_signal(directives),
    )


def _directives(job: Job, site: Site, made: _Decisions) -> tuple[tuple[str, str], ...]:
    topology, settings = made.request.topology, made.settings
    own = (
        *resolve_directives(site, settings, topology, made.launch),
        *elastic_directives(made.request.elastic, topology.nodes),
        *signal_directives(job, site, made.launch),
    )
    extra = extra_directives(settings, own) if site.value.scheduler == "slurm" else ()
    directives = with_storage((*own, *extra), job, site)
    check_forbidden(directives, site, settings)
    return directives


def _identity(job: Job, site: Site) -> dict[str, Setting]:
    name = Setting(value=job.value.name, origin=job.origin("name"))
    command = Setting(value=list(job.value.command), origin=job.origin("command"))
    return {"name": name, "command": command, "launcher": resolve_launcher(job, site)}


def _check_placement(site: Site, *, nested: bool) -> None:
    if nested and site.value.scheduler != "slurm":
        raise PlanError(
            f"placement nested needs one allocation for all runs, which {site.value.name} "
            "does not have",
            "leave placement out: independent is the default",
        )


def _placement(topology: Topology) -> Setting:
    nodes = f"{topology.nodes} nodes" if topology.nodes > 1 else "node"
    return rule("nested", f"nested: the first {nodes} of the study's allocation")


def _inside(job: Job, site: Site, environment: JobEnvironment) -> dict[str, Setting]:
    """Return what is settled inside the job, before the ranks start."""
    return {
        **custom_settings(job, site),
        **_launching(job, site),
        **extra_settings(job, site),
        **elastic_settings(job),
        **signal_settings(job),
        **container_settings(job, site),
        **rendezvous_settings(site),
        **environment.settings,
        **secret_settings(job),
        **preflight_settings(site),
        **setup_settings(job, site, environment.script),
        **_template(site),
    }


def _launching(job: Job, site: Site) -> dict[str, Setting]:
    args, torch = list(job.value.launcher_args), job.value.torch or site.value.torch
    given = {
        "launcher_args": Setting(value=args, origin=job.near("launcher_args")) if args else None,
        "torch": from_job(job, "torch") or from_site(site, "torch", torch),
    }
    return {key: setting for key, setting in given.items() if setting is not None}


def _template(site: Site) -> dict[str, Setting]:
    own = from_site(site, "template", site.value.template, "instead of the scheduler's")
    return {"template": own} if own else {}
