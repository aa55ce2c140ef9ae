"""Resolve a job and a site into a plan."""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Iterator, Mapping

import msgspec

from hpc_train.base.value import Value, at_least, encode_unit
from hpc_train.jobs.job import SourcedJob, Topology
from hpc_train.plans.binding import binding_warnings, place_settings, resolve_binding, with_binding
from hpc_train.plans.containers.resolve import container_settings, container_setup
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
from hpc_train.plans.distributed_backend import follows_from_gpus
from hpc_train.plans.environment import (
    JobEnvironment,
    resolve_environment,
    resolve_secrets,
    secret_settings,
)
from hpc_train.plans.launch_request import make_request, mpi_warnings, resolve_launch
from hpc_train.plans.launchers.base import each_node, texts
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
from hpc_train.plans.network import network_of
from hpc_train.plans.node_and_rank_counts import core_warnings, gpu_warnings, resolve_topology
from hpc_train.plans.partition_choice import (
    Choice,
    check_limits,
    choose_partition,
    partition_warnings,
)
from hpc_train.plans.plan import Checks, JobVar, Launch, LaunchPlan, LaunchRequest, Setting, Token
from hpc_train.plans.rendezvous import (
    check_elastic,
    elastic_directives,
    elastic_settings,
    port_warnings,
    rendezvous_settings,
)
from hpc_train.plans.resource_requests import memory_warnings, request_settings
from hpc_train.plans.storage import with_storage
from hpc_train.sites.partition import Network, PluginCheck, Preemption
from hpc_train.sites.profile import SourcedSite


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
        *core_warnings(context, settings),
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
        plain=context.plain,
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


def setup_settings(context: Context, script: str | None) -> dict[str, Setting]:
    """Return `modules_purge`, `modules_use.0`, …, `modules.0`, … and `setup.0`, … in their order.

    The vendor's script follows the site's lines, which load its modules.
    """
    job, site = context.job, context.site
    why = "the vendor's own settings; they need not be repeated"
    modules = [
        *((name, context.near(f"modules.{i}")) for i, name in enumerate(context.partition.modules)),
        *((name, site.origin(f"modules.{i}")) for i, name in enumerate(site.value.modules)),
    ]
    modules += [(name, job.origin(f"modules.{i}")) for i, name in enumerate(job.value.modules)]
    lines = [(line, site.origin(f"setup.{i}")) for i, line in enumerate(site.value.setup)]
    sourced = site.near("network.script") if script is not None else None
    if script is not None and sourced is not None:
        lines.append((f"source {shlex.quote(script)}", sourced))
    lines += container_setup(job, site)
    lines += [(line, job.origin(f"setup.{i}")) for i, line in enumerate(job.value.setup)]
    folders = [
        (folder, site.origin(f"modules_use.{i}")) for i, folder in enumerate(site.value.modules_use)
    ]
    return _purge(site) | {
        f"{key}.{i}": Setting(value=value, origin=origin, why=why * (origin == sourced))
        for key, found in (("modules_use", folders), ("modules", modules), ("setup", lines))
        for i, (value, origin) in enumerate(found)
    }


def _purge(site: SourcedSite) -> dict[str, Setting]:
    if not site.value.modules_purge:
        return {}
    why = "the job must not depend on what the submitting shell has loaded"
    return {"modules_purge": Setting(value=True, origin=site.origin("modules_purge"), why=why)}


def values_of(key: str, settings: dict[str, Setting]) -> tuple[str, ...]:
    """Return the values of `modules_use.0`, … `modules.0`, … or `setup.0`, … in their order."""
    return tuple(s.value for name, s in settings.items() if name.partition(".")[0] == key)


_CHECKS = JobVar(name="preflight")
_PLUGIN = JobVar(name="plugin_check")
_TIMEOUT_S = 30


def resolve_preflight(site: SourcedSite, request: LaunchRequest, network: Network) -> Checks | None:
    """Return the checks that a site's profile requests; None if there are none."""
    wanted = site.value.preflight
    if wanted is None:
        return None
    # A job on one node needs no network.
    several = request.topology.nodes > 1
    hcas = wanted.hcas or (network.hcas if several else ())
    return Checks(
        argv=(
            *_on_each_node(request, _CHECKS),
            *texts("preflight", request.command[0]),
            JobVar(name="MASTER_ADDR"),
        ),
        gpus=request.topology.gpus_per_node if wanted.gpus else 0,
        # The programs in an image differ from those of the host.
        program=wanted.program and request.container is None,
        image=_image(request) if wanted.program else None,
        names=wanted.names,
        interfaces=wanted.interfaces or (network.interfaces if several else ()),
        hcas=tuple((name, port) for name, _, port in (hca.partition(":") for hca in hcas)),
        space=tuple((path, int(size)) for path, size in wanted.space.items()),
        memlock=wanted.memlock,
        clock_s=None if wanted.clock is None else int(wanted.clock),
        timeout_s=_TIMEOUT_S if wanted.timeout is None else int(wanted.timeout),
    )


def plugin_argv(request: LaunchRequest, plugin: PluginCheck | None) -> tuple[Token, ...]:
    """Return the command that looks for the library of a plug-in on each node."""
    return _on_each_node(request, _PLUGIN) if plugin else ()


def preflight_settings(site: SourcedSite) -> dict[str, Setting]:
    """Return the settings of the checks, with their origin."""
    if site.value.preflight is None:
        return {}
    why = "a bad node ends the job before the ranks start, and is on record for retry"
    return {"preflight": Setting(value="on", origin=site.near("preflight"), why=why)}


def _image(request: LaunchRequest) -> str | None:
    """Return the path of the image, if it is a file."""
    image = request.container.image if request.container else ""
    return image if image.startswith("/") else None


def _on_each_node(request: LaunchRequest, checks: JobVar) -> tuple[Token, ...]:
    bare = msgspec.structs.replace(request, container=None)
    return (*each_node(bare), *texts("bash", "-c"), checks)


def default_settings(context: Context) -> dict[str, Setting]:
    """Return the defaults of the site that may be unexpected for a job."""
    return {
        **_default_time(context),
        **_requeue(context.site),
        **_steps(context.site),
        **_cores(context.site),
        **_preemption(context),
    }


def default_warnings(context: Context) -> Iterator[str]:
    """Warn of a default time limit, and of options that the scheduler does not have."""
    yield from _without_options(context)
    site, partition = context.site, context.partition
    listed = context.queue.partition is not None
    where = f"{site.value.name} {partition.name}" if listed else site.value.name
    for limit in _default_time(context).values():
        yield (
            f"no time limit: {where} ends the job after {limit.value} ({limit.origin}); "
            "give it a time"
        )


def _without_options(context: Context) -> Iterator[str]:
    """Name what the job requests of a queue; where there is none, the same job runs without it."""
    job, site = context.job, context.site.value
    keys = [key for key in ("qos", "constraint") if getattr(job.value, key) is not None]
    keys += [f"directives.{name}" for name in job.value.directives]
    if keys and not context.batch.directives:
        yield (
            f"{job.near(keys[0])}: {site.name} (scheduler {site.scheduler}) has no option for "
            f"{', '.join(keys)}: the job runs without"
        )


def _default_time(context: Context) -> dict[str, Setting]:
    limit = context.partition.default_time
    if limit is None or context.job.value.resources.time is not None:
        return {}
    origin, why = context.origin("default_time"), "the job asks for no time"
    return {"default_time": Setting(value=limit, origin=origin, why=why)}


def _requeue(site: SourcedSite) -> dict[str, Setting]:
    lifecycle = site.value.lifecycle
    if lifecycle is None or lifecycle.requeue is None:
        return {}
    does = "starts the job again" if lifecycle.requeue else "does not start the job again"
    why = f"Slurm {does} when a node is lost, unless sbatch is told otherwise"
    why = f"{why}; {lifecycle.note}" if lifecycle.note else why
    return {
        "requeue": Setting(
            value=lifecycle.requeue, origin=site.origin("lifecycle.requeue"), why=why
        )
    }


def _steps(site: SourcedSite) -> dict[str, Setting]:
    """psid differs from srun in options that a step only inherits."""
    if site.value.step_manager == "slurmd":
        return {}
    why = "not slurmd: each srun is told its cores, tasks and nodes, and inherits none of them"
    origin = site.origin("step_manager")
    return {"step_manager": Setting(value=site.value.step_manager, origin=origin, why=why)}


def _cores(site: SourcedSite) -> dict[str, Setting]:
    if site.value.cpu_request == "allowed":
        return {}
    why = "cores come with the nodes or GPUs; only the job's steps count them"
    return {"cpu_request": Setting(value="forbidden", origin=site.origin("cpu_request"), why=why)}


def _preemption(context: Context) -> dict[str, Setting]:
    rules = context.partition.preemption
    if rules is None:
        return {}
    origin = context.near("preemption")
    return {"preemption": Setting(value="possible", origin=origin, why=_ended(rules))}


def _ended(rules: Preemption) -> str:
    words = ["the job may be ended for another's sake"]
    words += [f"not in its first {rules.safe}"] if rules.safe else []
    words += [f"{rules.grace} after the first signal"] if rules.grace else []
    words += [] if rules.warning else ["without any signal before"]
    if not rules.warning:
        words += ["ranks have only the seconds of Slurm's KillWait to save"]
    return "; ".join(words)


# Pattern of an option or a variable's name -> its replacement in Open MPI 5.
_GONE = {
    r"(OMPI_MCA_)?orte_tag_output": "PRTE_MCA_output=tag, or --output tag",
    r"(OMPI_MCA_)?orte_base_help_aggregate": "OMPI_MCA_opal_base_help_aggregate",
    r"orte_ess_base_stream_buffering": "OMPI_MCA_ompi_stream_buffering",
    r"(OMPI_MCA_)?oob_tcp_if_(in|ex)clude": "PRTE_MCA_prte_if_include",
    r"(OMPI_MCA_)?(orte|plm|rmaps|ras|oob|ess)_\w+": "PRTE_MCA_…, its runtime is PRRTE",
    r"PRRTE_MCA_\w+": "PRTE_MCA_…, with one R",
    r"--?(npernode|npersocket|cpus-per-proc|bind-to-core)": "--map-by ppr:N:node:PE=M, --bind-to",
}


def openmpi_warnings(
    context: Context, env: Mapping[str, Setting], mpi: str | None
) -> tuple[str, ...]:
    """Warn of options that Open MPI 5 no longer has and silently ignores; `mpi` is srun's type."""
    if not at_least(context.site.value.launchers.openmpi, "5"):
        return ()
    return tuple(_old_words(context, env, mpi))


def _old_words(context: Context, env: Mapping[str, Setting], mpi: str | None) -> Iterator[str]:
    site, launcher = context.site, context.launcher
    launchers = site.value.launchers
    if launcher.mpi and launcher.through_srun and mpi == "pmi2":
        yield f"{site.origin('launchers.mpi')}: Open MPI 5 has no PMI-2; use pmix"
    places = [(word, site.near("launchers.mpirun_args")) for word in launchers.mpirun_args]
    places = places if launcher.open_mpi else []
    for word, origin in [*places, *((name, setting.origin) for name, setting in env.items())]:
        for pattern, instead in _GONE.items():
            if re.fullmatch(pattern, word):
                yield f"{origin}: Open MPI 5 has no {word}: {instead}"
                break


def plan_digest(plan: LaunchPlan) -> str:
    """Return eight hex digits that depend on the job, but not on line numbers."""
    # The default backend of torch adds no information.
    backend = "" if plan.backend == follows_from_gpus(plan.topology) else plan.backend
    # The text that the launcher adds to every script does not depend on the job.
    launch = msgspec.structs.replace(plan.launch, shell=msgspec.UNSET)
    bare = msgspec.structs.replace(
        plan, settings={}, warnings=(), notes=(), backend=backend, launch=launch
    )
    return hashlib.sha256(msgspec.json.encode(bare, enc_hook=encode_unit)).hexdigest()[:8]
