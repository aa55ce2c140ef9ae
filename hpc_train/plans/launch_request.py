"""The request to a launcher; a job must not repeat an option that the launcher sets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from hpc_train.base.errors import PlanError
from hpc_train.jobs.job import Topology
from hpc_train.plans.containers.resolve import check_starter, resolve_container
from hpc_train.plans.context import Context
from hpc_train.plans.environment import JobEnvironment
from hpc_train.plans.launchers.base import RANK_WRAPPER
from hpc_train.plans.lifecycle import lifecycle_variables
from hpc_train.plans.other_launchers import check_launcher, other_launchers
from hpc_train.plans.plan import Binding, EnvChange, Launch, LaunchRequest, Text, Token
from hpc_train.plans.rendezvous import resolve_elastic
from hpc_train.plans.resource_requests import type_settings

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
    context: Context, topology: Topology, environment: JobEnvironment
) -> LaunchRequest:
    """Collect the values of a job and a site that launchers need.

    Raises:
        PlanError: the container or the elastic bounds are invalid, or the launcher starts no ranks
            of MPI for a program that needs them.
    """
    job, site = context.job.value, context.site.value
    launchers, env = site.launchers, environment.variables
    container = resolve_container(context, topology, environment)
    kind = type_settings(context, topology).get("gpu_type")
    return LaunchRequest(
        topology=topology,
        command=job.command,
        batch=context.batch,
        srun_args=launchers.srun_args,
        mpi=_mpi(context, environment.backend, inside=container is not None),
        exported=(*env, *lifecycle_variables(context), *job.secrets),
        gpu_request=site.gpu_request,
        gpu_type=kind.value if kind else None,
        nested=False,
        args=job.launcher_args,
        mpirun_args=launchers.mpirun_args,
        binding=Binding(numa=launchers.numa_binding, mpirun=launchers.bind_to),
        threads_per_core=context.partition.threads_per_core or 1,
        container=container,
        elastic=resolve_elastic(context.job),
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
    check_starter(context, request.container)
    _check_arguments(context, request, launch)
    return _without_wrapper(launch, environment.changes) if context.plain else launch


def _without_wrapper(launch: Launch, changes: Iterable[EnvChange]) -> Launch:
    """Start the ranks of a plain script directly, unless their wrapper sets variables."""
    if launch.rank_env or any(change.scope == "ranks" for change in changes):
        return launch
    # Its place in `bash -c "$rank_wrapper" rank`.
    at = launch.argv.index(RANK_WRAPPER)
    return replace(launch, argv=(*launch.argv[: at - 2], *launch.argv[at + 2 :]))


def _mpi(context: Context, backend: str, *, inside: bool) -> str | None:
    """Return the type for `srun --mpi`, if MPI connects the ranks; `none` needs no ranks of MPI.

    Other ranks do not need it, and a plug-in that they load can fail for reasons of its own: two
    slurmd on one machine, for example, write to the same /tmp/spmix_appdir_*.
    """
    _check_mpi(context)
    site = context.site.value
    within = site.containers.mpi if inside and site.containers else None
    kind = within or site.launchers.mpi
    used = context.launcher.mpi and (context.job.value.mpi or backend == "mpi")
    return kind if used or kind == "none" else None


def _check_mpi(context: Context) -> None:
    """Refuse `mpi: true` with a launcher whose ranks MPI does not connect.

    Raises:
        PlanError: with the launchers that it connects.
    """
    job, launcher = context.job, context.launcher
    if job.value.mpi and not (launcher.mpi or launcher.one_rank):
        raise PlanError(
            f"{job.origin('mpi')}: mpi is true, but the launcher {launcher.name} starts ranks that "
            "MPI does not connect",
            other_launchers(context),
        )


def mpi_warnings(context: Context, request: LaunchRequest) -> Iterator[str]:
    """Warn of ranks of MPI for which a profile states no type of `srun --mpi`."""
    stated = any(word.startswith("--mpi") for word in (*request.srun_args, *request.args))
    if context.job.value.mpi and context.by_srun and not (request.mpi or stated):
        yield (
            f"{context.job.origin('mpi')}: {context.site.value.name} states no launchers.mpi, so "
            "srun uses the MpiDefault of the cluster; launcher_args: [--mpi=pmix] states another"
        )


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
                f"{context.job.near('launcher_args')}: launcher_args: hpctrain gives --{option} "
                "by itself",
                f"say it with {key}" if key else "take it out",
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
