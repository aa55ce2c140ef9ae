"""Resolve a job and a site into a plan."""

from __future__ import annotations

from collections.abc import Iterator

from hpc_train.model.job import SourcedJob
from hpc_train.model.plan import Launch, LaunchPlan, LaunchRequest, Setting, Topology
from hpc_train.model.site import SourcedSite
from hpc_train.model.value import Value
from hpc_train.plans.binding import binding_warnings, place_settings, resolve_binding, with_binding
from hpc_train.plans.containers.resolve import container_settings
from hpc_train.plans.context import (
    Context,
    check_placement,
    from_job,
    from_site,
    host_list,
    launcher_warnings,
    resolve_context,
    rule,
    with_trainer,
)
from hpc_train.plans.directives import (
    check_forbidden,
    check_version,
    extra_directives,
    extra_settings,
    resolve_directives,
)
from hpc_train.plans.environment import (
    JobEnvironment,
    resolve_environment,
    resolve_secrets,
    secret_settings,
)
from hpc_train.plans.explanations import directive_notes
from hpc_train.plans.job_setup import (
    plugin_argv,
    preflight_settings,
    resolve_preflight,
    setup_settings,
    values_of,
)
from hpc_train.plans.launch_request import make_request, mpi_warnings, resolve_launch
from hpc_train.plans.lifecycle import (
    check_requeue,
    check_signal,
    passes_signal,
    requeue_directives,
    requeue_settings,
    signal_directives,
    signal_settings,
)
from hpc_train.plans.missing_keys import check_missing
from hpc_train.plans.network_context import network_of
from hpc_train.plans.node_and_rank_counts import gpu_warnings, resolve_topology
from hpc_train.plans.partition_choice import (
    Choice,
    check_limits,
    choose_partition,
    partition_warnings,
)
from hpc_train.plans.rendezvous import (
    check_elastic,
    elastic_directives,
    elastic_settings,
    port_warnings,
    rendezvous_settings,
)
from hpc_train.plans.resource_requests import memory_warnings, request_settings
from hpc_train.plans.site_differences import default_settings, default_warnings, openmpi_warnings
from hpc_train.plans.storage import with_storage


def make_plan(
    job: SourcedJob, site: SourcedSite, *, nested: bool = False, plain: bool = False
) -> LaunchPlan:
    """Resolve a job for a site; the same input gives the same plan.

    With `nested` the job is planned for the first nodes of an allocation that may be larger; with
    `plain` for a script that does not track the run.

    Raises:
        UnknownNameError: the launcher or the partition does not exist.
        PlanError: the site forbids the launcher, or the job exceeds a limit.
    """
    check_placement(site, nested=nested)
    context, partition = _queued(resolve_context(job, site, plain=plain))
    topology, settings = resolve_topology(context)
    context = with_trainer(context, topology)
    warnings = (
        *check_limits(context, topology),
        *memory_warnings(context, topology),
        *check_signal(context.job, site, nested=nested),
        *check_requeue(context, nested=nested),
    )
    requests = request_settings(context, topology, partition)
    settings = {**_identity(context), **settings, **requests}
    environment = resolve_environment(context, topology)
    bound = resolve_binding(context, topology)
    request = with_binding(make_request(context, topology, environment), bound, nested=nested)
    launch = resolve_launch(context, request, environment)
    bound |= place_settings(context, request, launch, environment.changes)
    settings |= {"placement": _placement(topology)} if nested else {}
    return _assemble(
        context,
        _Decisions(
            request=request,
            launch=launch,
            environment=environment,
            settings={**settings, **bound, **_inside(context, request, environment)},
            warnings=(*warnings, *_warnings(context, request, launch, environment)),
        ),
    )


def _queued(context: Context) -> Choice:
    """Which keys are missing may depend on the partition that the job fits."""
    check_missing(context)
    choice = choose_partition(context)
    check_missing(choice.context)
    check_elastic(choice.context)
    return choice


def _warnings(
    context: Context, request: LaunchRequest, launch: Launch, environment: JobEnvironment
) -> Iterator[str]:
    yield from default_warnings(context)
    yield from partition_warnings(context)
    yield from launcher_warnings(context)
    yield from environment.warnings
    yield from gpu_warnings(request.topology, context.launcher, request.gpu_request)
    yield from mpi_warnings(context, request)
    yield from binding_warnings(context, request, launch, environment.changes)
    yield from openmpi_warnings(context, environment.variables, request.mpi)
    yield from port_warnings(context.site)


class _Decisions(Value, frozen=True, kw_only=True):
    """The decisions, by subject."""

    request: LaunchRequest
    launch: Launch
    environment: JobEnvironment
    settings: dict[str, Setting]
    warnings: tuple[str, ...]


def _assemble(context: Context, made: _Decisions) -> LaunchPlan:
    job, site = context.job, context.site
    settings, topology = made.settings, made.request.topology
    directives = _directives(context, made)
    return LaunchPlan(
        name=job.value.name,
        site=site.value.name,
        scheduler=site.value.scheduler,
        template=site.value.template or context.batch.template,
        launcher=context.launcher.name,
        topology=topology,
        time_s=int(settings["time"].value) if "time" in settings else None,
        rendezvous=site.value.rendezvous,
        workdir=job.value.workdir,
        directives=directives,
        notes=directive_notes(directives, settings, context.batch),
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
        secrets=resolve_secrets(job, context.batch),
        preflight=resolve_preflight(site, made.request, network_of(context)),
        container=made.request.container,
        elastic=made.request.elastic,
        passes_signal=passes_signal(context.job, directives),
        plugin=made.environment.plugin,
        plugin_argv=plugin_argv(made.request, made.environment.plugin),
        lifecycle=job.value.lifecycle if context.batch.requeues else None,
        host_list=host_list(context),
    )


def _directives(context: Context, made: _Decisions) -> tuple[tuple[str, str], ...]:
    job, site = context.job, context.site
    topology, settings = made.request.topology, made.settings
    own = (
        *resolve_directives(site, settings, topology, made.launch),
        *elastic_directives(made.request.elastic, topology.nodes),
        *signal_directives(context),
        *requeue_directives(context),
    )
    extra = extra_directives(settings, own, context.batch) if context.batch.prefix else ()
    directives = with_storage((*own, *extra), job, site)
    check_forbidden(directives, site, settings)
    check_version(directives, site, settings)
    return directives


def _identity(context: Context) -> dict[str, Setting]:
    job = context.job
    return {
        "name": Setting(value=job.value.name, origin=job.origin("name")),
        "command": Setting(value=list(job.value.command), origin=job.origin("command")),
        "launcher": context.chosen,
    }


def _placement(topology: Topology) -> Setting:
    nodes = f"{topology.nodes} nodes" if topology.nodes > 1 else "node"
    return rule("nested", f"nested: the first {nodes} of the study's allocation")


def _inside(
    context: Context, request: LaunchRequest, environment: JobEnvironment
) -> dict[str, Setting]:
    """Return the settings that are resolved inside the job, before the ranks start."""
    job, site = context.job, context.site
    return {
        **default_settings(context),
        **_launching(job, site),
        **extra_settings(job, site),
        **elastic_settings(job, request.elastic),
        **signal_settings(context),
        **requeue_settings(job),
        **container_settings(job, site),
        **rendezvous_settings(site),
        **environment.settings,
        **secret_settings(job),
        **preflight_settings(site),
        **setup_settings(context, environment.script),
    }


def _launching(job: SourcedJob, site: SourcedSite) -> dict[str, Setting]:
    args, torch = list(job.value.launcher_args), job.value.torch or site.value.torch
    given = {
        "launcher_args": Setting(value=args, origin=job.near("launcher_args")) if args else None,
        "torch": from_job(job, "torch") or from_site(site, "torch", torch),
        "template": from_site(site, "template", site.value.template, "instead of the scheduler's"),
    }
    return {key: setting for key, setting in given.items() if setting is not None}
