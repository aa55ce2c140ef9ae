"""Resolve a job and a site into a plan."""

import hashlib
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from hpc_train.base.errors import PlanError
from hpc_train.base.values import encode_unit
from hpc_train.base.variable_names_and_secrets import ENV
from hpc_train.jobs.job import SourcedJob, Topology
from hpc_train.plans import containers, lifecycle, node_and_rank_counts as ranks
from hpc_train.plans.binding import left_out, resolve_binding
from hpc_train.plans.context import (
    Context,
    check_launcher,
    from_job,
    from_site,
    known,
    other_launchers,
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
from hpc_train.plans.environment import JobEnvironment, resolve_environment, resolve_secrets
from hpc_train.plans.launchers.base import RANK_WRAPPER, each_node, texts
from hpc_train.plans.missing_keys import check_missing
from hpc_train.plans.network import follows_from_gpus, network_of
from hpc_train.plans.node_and_rank_counts import memory_warnings, request_settings, type_settings
from hpc_train.plans.partition_choice import check_limits, choose_partition
from hpc_train.plans.plan import (
    Binding,
    Checks,
    JobVar,
    Launch,
    LaunchPlan,
    LaunchRequest,
    Setting,
    Text,
    Token,
)
from hpc_train.sites.partition import Network, Preemption
from hpc_train.sites.profile import HostList, SourcedSite


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
    context = resolve_context(job, site, plain=plain)
    # Which keys are missing may depend on the partition that the job fits.
    check_missing(context)
    context, partition = choose_partition(context)
    check_missing(context)
    ranks.check_elastic(context)
    topology, counts = ranks.resolve_topology(context)
    context = with_trainer(context, topology)
    job, profile = context.job, site.value
    warnings = [
        *check_limits(context, topology),
        *ranks.core_warnings(context, counts),
        *memory_warnings(context, topology),
        *lifecycle.check_signal(job, site, nested=nested),
        *lifecycle.check_requeue(context, nested=nested),
    ]
    requests = request_settings(context, topology, partition)
    environment = resolve_environment(context, topology)
    bound = resolve_binding(context, topology)
    request = make_request(context, topology, environment, bound, nested=nested)
    launch = resolve_launch(context, request, environment)
    settings = {
        **_outside(context, {**counts, **requests}, nested=nested),
        **bound,
        **left_out(context, request, launch),
        **_inside(context, request, environment),
    }
    warnings += _warnings(context, request, environment)
    directives = _directives(context, request, launch, settings)
    return LaunchPlan(
        name=job.value.name,
        site=profile.name,
        scheduler=profile.scheduler,
        template=profile.template or context.batch.template,
        launcher=context.launcher.name,
        topology=topology,
        time_s=int(settings["time"].value) if "time" in settings else None,
        rendezvous=profile.rendezvous,
        workdir=job.value.workdir,
        directives=directives,
        plain=context.plain,
        env=environment.env,
        changes=environment.changes,
        backend=environment.backend,
        modules_purge=profile.modules_purge,
        modules_use=values_of("modules_use", settings),
        modules=values_of("modules", settings),
        setup=values_of("setup", settings),
        comment=job.value.comment or "",
        launch=launch,
        settings=settings,
        warnings=tuple(warnings),
        nested=nested,
        secrets=resolve_secrets(job, context.batch),
        preflight=resolve_preflight(site, request, network_of(context)),
        container=request.container,
        elastic=request.elastic,
        passes_signal=lifecycle.passes_signal(job, directives),
        plugin=environment.plugin,
        plugin_argv=_on_each_node(request, _PLUGIN) if environment.plugin else (),
        lifecycle=job.value.lifecycle if context.batch.requeues else None,
        host_list=HostList(hosts=profile.hosts, shared=profile.shared, workdir=profile.workdir)
        if context.batch.host_list
        else None,
    )


def _outside(context: Context, requests: dict[str, Setting], *, nested: bool) -> dict[str, Setting]:
    """Return what a job is and requests, in the order of its script."""
    job, nodes = context.job, requests["nodes"].value
    first = f"the first {nodes} nodes" if nodes > 1 else "the first node"
    return {
        "name": Setting(value=job.value.name, origin=job.origin("name")),
        "command": Setting(value=list(job.value.command), origin=job.origin("command")),
        "launcher": context.chosen,
        **requests,
        **(
            {"placement": rule("nested", f"nested: {first} of the study's allocation")}
            if nested
            else {}
        ),
    }


def _directives(
    context: Context, request: LaunchRequest, launch: Launch, settings: dict[str, Setting]
) -> tuple[tuple[str, str], ...]:
    site, topology = context.site, request.topology
    own = (
        *resolve_directives(site, settings, topology, launch),
        *ranks.elastic_directives(request.elastic, topology.nodes),
        *lifecycle.signal_directives(context),
        *lifecycle.requeue_directives(context),
    )
    extra = extra_directives(settings, own, context.batch) if context.batch.prefix else ()
    directives = (*own, *extra)
    check_forbidden(directives, site, settings)
    check_version(directives, site, settings)
    return directives


def _inside(
    context: Context, request: LaunchRequest, environment: JobEnvironment
) -> dict[str, Setting]:
    """Return the settings that are resolved inside the job, before the ranks start."""
    job, site, elastic = context.job, context.site, request.elastic
    args, torch = list(job.value.launcher_args), job.value.torch or site.value.torch
    checks = Setting(
        value="on",
        origin=site.near("preflight"),
        why="a bad node ends the job before the ranks start, and is recorded for retry",
    )
    given = {
        "launcher_args": Setting(value=args, origin=job.near("launcher_args")) if args else None,
        "torch": from_job(job, "torch") or from_site(site, "torch", torch),
        "template": from_site(site, "template", site.value.template, "instead of the scheduler's"),
    }
    return {
        **default_settings(context),
        **known(given),
        **extra_settings(job, site),
        **{
            f"elastic.{key}": Setting(value=bound, origin=job.near(f"elastic.{key}"))
            for key, bound in (msgspec.structs.asdict(elastic) if elastic else {}).items()
        },
        **lifecycle.signal_settings(context),
        **lifecycle.requeue_settings(job),
        **containers.container_settings(job, site),
        **ranks.rendezvous_settings(site),
        **environment.settings,
        **{
            f"secrets.{name}": Setting(
                value=where,
                origin=job.near(f"secrets.{name}"),
                why="from the shell you submit from"
                if where == ENV
                else "read by the job, mode 0600",
            )
            for name, where in job.value.secrets.items()
        },
        **({"preflight": checks} if site.value.preflight else {}),
        **setup_settings(context, environment.script),
    }


def setup_settings(context: Context, script: str | None) -> dict[str, Setting]:
    """Return `modules_purge`, `modules_use.0`, …, `modules.0`, … and `setup.0`, … in their order.

    The vendor's script follows the site's lines, which load its modules.
    """
    job, site, partition = context.job, context.site, context.partition
    modules = [(name, context.near(f"modules.{i}")) for i, name in enumerate(partition.modules)]
    modules += _listed(site, "modules") + _listed(job, "modules")
    lines = _listed(site, "setup")
    sourced = site.near("network.script") if script is not None else None
    if script is not None and sourced is not None:
        lines.append((f"source {shlex.quote(script)}", sourced))
    lines += [*containers.container_setup(job, site), *_listed(job, "setup")]
    purge = site.value.modules_purge or None
    why = "the job must not depend on what the submitting shell has loaded"
    settings = known({"modules_purge": from_site(site, "modules_purge", purge, why)})
    why = "the vendor's own settings; they need not be repeated"
    found = {"modules_use": _listed(site, "modules_use"), "modules": modules, "setup": lines}
    return settings | {
        f"{key}.{i}": Setting(value=value, origin=origin, why=why * (origin == sourced))
        for key, values in found.items()
        for i, (value, origin) in enumerate(values)
    }


def _listed(sourced: SourcedJob | SourcedSite, key: str) -> list[tuple[str, str]]:
    """Return the values of a list, each with its origin."""
    values = getattr(sourced.value, key)
    return [(value, sourced.origin(f"{key}.{i}")) for i, value in enumerate(values)]


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
    image = request.container.image if request.container else ""
    return Checks(
        argv=(
            *_on_each_node(request, _CHECKS),
            *texts("preflight", request.command[0]),
            JobVar(name="MASTER_ADDR"),
        ),
        gpus=request.topology.gpus_per_node if wanted.gpus else 0,
        # The programs in an image differ from those of the host.
        program=wanted.program and request.container is None,
        image=image if wanted.program and image.startswith("/") else None,
        names=wanted.names,
        interfaces=wanted.interfaces or (network.interfaces if several else ()),
        hcas=tuple((name, port) for name, _, port in (hca.partition(":") for hca in hcas)),
        space=tuple((path, int(size)) for path, size in wanted.space.items()),
        memlock=wanted.memlock,
        clock_s=None if wanted.clock is None else int(wanted.clock),
        timeout_s=_TIMEOUT_S if wanted.timeout is None else int(wanted.timeout),
    )


def _on_each_node(request: LaunchRequest, checks: JobVar) -> tuple[Token, ...]:
    bare = msgspec.structs.replace(request, container=None)
    return (*each_node(bare), *texts("bash", "-c"), checks)


def default_settings(context: Context) -> dict[str, Setting]:
    """Return the defaults of the site that may be unexpected for a job."""
    site, lifecycle, rules = (
        context.site,
        context.site.value.lifecycle,
        context.partition.preemption,
    )
    found = {"default_time": _default_time(context)}
    if lifecycle and lifecycle.requeue is not None:
        does = "starts the job again" if lifecycle.requeue else "does not start the job again"
        why = f"Slurm {does} when a node is lost, unless an sbatch option changes that"
        why = f"{why}; {lifecycle.note}" if lifecycle.note else why
        found["requeue"] = from_site(site, "lifecycle.requeue", lifecycle.requeue, why)
    if site.value.step_manager != "slurmd":
        # psid differs from srun in options that a step only inherits.
        why = "not slurmd: each srun states its cores, tasks and nodes, and inherits none"
        found["step_manager"] = from_site(site, "step_manager", site.value.step_manager, why)
    if site.value.cpu_request != "allowed":
        why = "cores come with the nodes or GPUs; only the job's steps count them"
        found["cpu_request"] = from_site(site, "cpu_request", "forbidden", why)
    if rules is not None:
        place = context.near("preemption")
        found["preemption"] = Setting(value="possible", origin=place, why=_ended(rules))
    return known(found)


def _warnings(
    context: Context, request: LaunchRequest, environment: JobEnvironment
) -> Iterator[str]:
    """Warn of what the site does by default, lacks, or advises against."""
    job, site, partition, launcher = context.job, context.site, context.partition, context.chosen
    name = site.value.name
    # Where there is no queue, the same job runs without these.
    keys = [key for key in ("qos", "constraint") if getattr(job.value, key) is not None]
    keys += [f"directives.{option}" for option in job.value.directives]
    if keys and not context.batch.directives:
        yield (
            f"{job.near(keys[0])}: {name} (scheduler {site.value.scheduler}) has no option for "
            f"{', '.join(keys)}: the job runs without"
        )
    if limit := _default_time(context):
        where = f"{name} {partition.name}" if context.queue.partition is not None else name
        yield (
            f"no time limit: {where} ends the job after {limit.value} ({limit.origin}); "
            "give it a time"
        )
    if why := site.value.launchers.warned.get(launcher.value):
        place = site.near(f"launchers.warned.{launcher.value}")
        yield f"{launcher.origin}: {name} advises against {launcher.value}: {why} ({place})"
    yield from environment.warnings
    yield from ranks.gpu_warnings(request.topology, context.launcher, request.gpu_request)
    stated = any(word.startswith("--mpi") for word in (*request.srun_args, *request.args))
    if job.value.mpi and context.by_srun and not (request.mpi or stated):
        yield (
            f"{job.origin('mpi')}: {name} states no launchers.mpi, so srun uses the MpiDefault of "
            "the cluster; launcher_args: [--mpi=pmix] states another"
        )


def _default_time(context: Context) -> Setting | None:
    if context.job.value.resources.time is not None:
        return None
    limit, key = context.partition.default_time, context.key("default_time")
    return from_site(context.site, key, limit, "the job requests no time")


def _ended(rules: Preemption) -> str:
    words = ["another job may preempt this one"]
    words += [f"not in its first {rules.safe}"] if rules.safe else []
    words += [f"{rules.grace} after the first signal"] if rules.grace else []
    words += [] if rules.warning else ["without any signal before"]
    if not rules.warning:
        words += ["ranks have only the seconds of Slurm's KillWait to save"]
    return "; ".join(words)


# Option of a launcher -> the job's key to use instead.
_KEYS = {
    "nodes": "resources.nodes",
    "nnodes": "resources.nodes, and elastic.min_nodes for a range",
    "ntasks": "resources.tasks_per_node",
    "ntasks-per-node": "resources.tasks_per_node",
    "nproc-per-node": "resources.tasks_per_node",
    "cpus-per-task": "resources.cpus_per_task",
    "export": "env",
}


def make_request(
    context: Context,
    topology: Topology,
    environment: JobEnvironment,
    bound: Mapping[str, Setting],
    *,
    nested: bool,
) -> LaunchRequest:
    """Collect the values of a job and a site that launchers need.

    Raises:
        PlanError: the container or the elastic bounds are invalid, or the launcher starts no ranks
            of MPI for a program that needs them.
    """
    job, site = context.job.value, context.site.value
    launchers, env = site.launchers, environment.variables
    container = containers.resolve_container(context, topology, environment)
    kind = type_settings(context, topology).get("gpu_type")
    words = {key: setting.value for key, setting in bound.items()}
    return LaunchRequest(
        topology=topology,
        command=job.command,
        batch=context.batch,
        srun_args=launchers.srun_args,
        mpi=_mpi(context, environment.backend, inside=container is not None),
        exported=(*env, *lifecycle.lifecycle_variables(context), *job.secrets),
        gpu_request=site.gpu_request,
        gpu_type=kind.value if kind else None,
        nested=nested,
        args=job.launcher_args,
        mpirun_args=launchers.mpirun_args,
        binding=Binding(
            cpus=words.get("cpu_bind"),
            gpus=words.get("gpu_bind"),
            numa=launchers.numa_binding,
            mpirun=launchers.bind_to,
        ),
        threads_per_core=context.partition.threads_per_core or 1,
        container=container,
        elastic=ranks.resolve_elastic(context.job),
        torch=job.torch or site.torch,
        openmpi=launchers.openmpi,
        plain=context.plain,
    )


def resolve_launch(context: Context, request: LaunchRequest, environment: JobEnvironment) -> Launch:
    """Return argv of the job's launcher.

    Raises:
        PlanError: the launcher cannot start the ranks or the image, or a word repeats an option.
    """
    check_launcher(context, request.topology)
    launch = context.launcher.command(request)
    containers.check_starter(context, request.container)
    _check_arguments(context, request, launch)
    # The ranks of a plain script start directly, unless their wrapper sets variables.
    wraps = launch.rank_env or any(change.scope == "ranks" for change in environment.changes)
    if wraps or not context.plain:
        return launch
    # Its place in `bash -c "$rank_wrapper" rank`.
    at = launch.argv.index(RANK_WRAPPER)
    return msgspec.structs.replace(launch, argv=(*launch.argv[: at - 2], *launch.argv[at + 2 :]))


def _mpi(context: Context, backend: str, *, inside: bool) -> str | None:
    """Return the type for `srun --mpi`, if MPI connects the ranks; `none` needs no ranks of MPI.

    Other ranks do not need it, and a plug-in that they load can fail for reasons of its own: two
    slurmd on one machine, for example, write to the same /tmp/spmix_appdir_*.
    """
    job, launcher, site = context.job, context.launcher, context.site.value
    if job.value.mpi and not (launcher.mpi or launcher.one_rank):
        raise PlanError(
            f"{job.origin('mpi')}: mpi is true, but the launcher {launcher.name} starts ranks that "
            "MPI does not connect",
            other_launchers(context),
        )
    within = site.containers.mpi if inside and site.containers else None
    kind = within or site.launchers.mpi
    used = launcher.mpi and (job.value.mpi or backend == "mpi")
    return kind if used or kind == "none" else None


def _check_arguments(context: Context, request: LaunchRequest, launch: Launch) -> None:
    """Refuse an option that is already set, because the last one would silently take precedence.

    Raises:
        PlanError: with the key to use instead.
    """
    words = [*_before_ranks(launch.argv), *_before_ranks(launch.agent or ())]
    given = Counter(map(_option, words))
    # A value of the job may follow that of the site.
    given.subtract(map(_option, (*request.srun_args, *request.mpirun_args, *request.args)))
    if request.container:
        runtime = (*request.container.around, *request.container.step)
        given.subtract(map(_option, _before_ranks(runtime)))
    if context.by_srun and not launch.agent:
        given["export"] = 1
    for option in filter(None, map(_option, request.args)):
        if given[option] > 0:
            key = _KEYS.get(option)
            raise PlanError(
                f"{context.job.near('launcher_args')}: launcher_args: hpctrain sets --{option} "
                "itself",
                f"use {key}" if key else "leave it out",
            )


def _before_ranks(tokens: Iterable[Token]) -> Iterator[str]:
    for token in tokens:
        if token == RANK_WRAPPER:
            return
        if isinstance(token, Text):
            yield token.text


def _option(word: str) -> str:
    """Return the long name of an option, which torchrun and accelerate accept in two spellings."""
    if not word.startswith("--"):
        return ""
    return word[2:].partition("=")[0].replace("_", "-")


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
