"""The container of a job: its image, and the runtime of the site."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Literal

from hpc_train.errors import PlanError
from hpc_train.model.container import Container, Containers
from hpc_train.model.job import SourcedJob
from hpc_train.model.plan import ContainerPlan, Setting, Topology
from hpc_train.model.site import SourcedSite
from hpc_train.model.variable_names_and_secrets import FROM_SCRIPT, RENDEZVOUS
from hpc_train.plans.containers.runtimes import (
    FORMS,
    ContainerRequest,
    Mount,
    RuntimeForm,
    check_characters,
    check_whole,
    parse_mount,
)
from hpc_train.plans.context import Context
from hpc_train.plans.environment import JobEnvironment
from hpc_train.plans.lifecycle import lifecycle_variables
from hpc_train.plans.network_context import vendor_of
from hpc_train.plans.other_launchers import other_launchers
from hpc_train.plans.storage import CHECKPOINTS


def resolve_container(
    context: Context, topology: Topology, environment: JobEnvironment
) -> ContainerPlan | None:
    """Return how the ranks are started in the job's image; None for a job without one.

    Raises:
        PlanError: the site has no runtime, or its runtime does not support the request.
    """
    job, site, wanted = context.job, context.site, context.job.value.container
    if wanted is None:
        return None
    if context.batch.image_of_job:
        _check_image_of_job(context, wanted)
        return None
    offered = _offered(job, site)
    form, env = FORMS[offered.runtime], environment.variables
    of_ranks = dict.fromkeys(c.name for c in environment.changes if c.scope == "ranks")
    of_script = (*(RENDEZVOUS if context.plain else FROM_SCRIPT), *lifecycle_variables(context))
    _check(job, form, offered.runtime)
    request = ContainerRequest(
        program=offered.program or offered.runtime,
        image=wanted.image,
        mounts=tuple(_mounts(job, site, env, form)),
        workdir=wanted.workdir,
        writable=wanted.writable,
        gpus=_gpus(context, topology),
        passed=tuple(dict.fromkeys((*of_script, *env, *job.value.secrets, *wanted.env))),
        private=tuple(job.value.secrets),
        of_ranks=tuple(of_ranks),
        vendors=environment.script is not None,
        args=offered.args,
        verb=offered.verb or "exec",
        plain=context.plain,
    )
    return _plan(offered, form, request)


def _plan(offered: Containers, form: RuntimeForm, request: ContainerRequest) -> ContainerPlan:
    words = form.words(request)
    return ContainerPlan(
        runtime=offered.runtime,
        program=None if form.by_srun else request.program,
        image=request.image,
        around=() if form.by_srun else words,
        step=words if form.by_srun else (),
        mounts=request.all_mounts() if offered.runtime == "edf" else (),
        workdir=request.place(),
        writable=request.writable,
        passed=request.passed,
        prefix=form.prefix,
        forbidden=form.forbidden,
        vendors=request.vendors and offered.runtime == "pyxis",
    )


def check_starter(context: Context, container: ContainerPlan | None) -> None:
    """Refuse a launcher whose ranks are not started by Slurm if Slurm opens the images.

    Raises:
        PlanError: with the launchers that will do.
    """
    if container and container.step and not context.by_srun:
        raise PlanError(
            f"{context.job.near('container')}: {container.runtime} opens images through srun, "
            f"which the launcher {context.launcher.name} does not use",
            other_launchers(context, lambda one: one.through_srun),
        )


def container_settings(job: SourcedJob, site: SourcedSite) -> dict[str, Setting]:
    """Return the settings of a job's container for `explain`."""
    wanted, offered = job.value.container, site.value.containers
    if wanted is None:
        return {}
    image = {"container.image": Setting(value=wanted.image, origin=job.near("container.image"))}
    if offered is None:
        return image
    runtime = Setting(value=offered.runtime, origin=site.origin("containers.runtime"))
    return {**image, "container.runtime": runtime}


def container_setup(job: SourcedJob, site: SourcedSite) -> tuple[tuple[str, str], ...]:
    """Return the site's setup lines for jobs with a container, each with its place."""
    offered = site.value.containers
    if job.value.container is None or offered is None:
        return ()
    return tuple(
        (line, site.origin(f"containers.setup.{i}")) for i, line in enumerate(offered.setup)
    )


def _check_image_of_job(context: Context, wanted: Container) -> None:
    """The scheduler starts the whole script in the image, and has no folders of this machine.

    Raises:
        PlanError: the job wants what a runtime of containers would do.
    """
    for key, value in (("mounts", wanted.mounts), ("workdir", wanted.workdir), ("env", wanted.env)):
        if value:
            raise PlanError(
                f"{context.job.near(f'container.{key}')}: container.{key}: {context.batch.title} "
                "starts the image without it",
                f"leave container.{key} out",
            )


def _offered(job: SourcedJob, site: SourcedSite) -> Containers:
    if site.value.containers is None:
        raise PlanError(
            f"{job.near('container')}: {site.value.name} names no runtime of containers",
            f"add `containers: {{runtime: apptainer}}` to the profile; known: {', '.join(FORMS)}",
        )
    return site.value.containers


def _check(job: SourcedJob, form: RuntimeForm, runtime: str) -> None:
    wanted = job.value.container or Container(image="")
    if wanted.writable and not form.writable:
        raise PlanError(f"{job.near('container.writable')}: {runtime} has no writable images")
    if wanted.workdir:
        check_whole(wanted.workdir, job.near("container.workdir"))
    if runtime == "edf":
        check_characters(wanted.image, "$", runtime, job.near("container.image"))
    if job.value.workdir:
        check_characters(job.value.workdir, form.forbidden, runtime, job.near("workdir"))


def _mounts(
    job: SourcedJob, site: SourcedSite, env: Mapping[str, Setting], form: RuntimeForm
) -> Iterator[Mount]:
    runtime, asked = _offered(job, site).runtime, tuple(_asked_for(job, site, env))
    # It mounts the file systems of the site itself.
    checkpoints = () if runtime == "shifter" else tuple(_of_checkpoints(job, asked))
    for mount in (*asked, *checkpoints):
        for path in (mount.source, mount.target):
            check_characters(path, form.forbidden, runtime, mount.where)
        yield mount


def _asked_for(job: SourcedJob, site: SourcedSite, env: Mapping[str, Setting]) -> Iterator[Mount]:
    """NCCL reads its topology file inside the container, so the file is mounted."""
    offered, wanted = site.value.containers, job.value.container
    for number, text in enumerate(offered.mounts if offered else ()):
        yield parse_mount(text, site.near(f"containers.mounts.{number}"))
    topology = env.get("NCCL_TOPO_FILE")
    if topology is not None:
        check_whole(str(topology.value), topology.origin)
        yield parse_mount(f"{topology.value}:{topology.value}:ro", topology.origin)
    for number, text in enumerate(wanted.mounts if wanted else ()):
        yield parse_mount(text, job.near(f"container.mounts.{number}"))


def _of_checkpoints(job: SourcedJob, mounts: Sequence[Mount]) -> Iterator[Mount]:
    """In the image alone they would be lost with it; the script reads their step on the host.

    Raises:
        PlanError: another folder of the host is mounted at its path.
    """
    folder = str(job.value.env.get(CHECKPOINTS, ""))
    where = job.near(f"env.{CHECKPOINTS}")
    if not folder.startswith("/"):
        return
    above = [one for one in mounts if PurePosixPath(folder).is_relative_to(one.target)]
    for mount in above[-1:]:
        if mount.source != mount.target:
            raise PlanError(
                f"{where}: {folder} is {mount.source} on the host ({mount.where}), where the job "
                "script reads the step of the last checkpoint",
                f"mount it at its own path, and name that: {mount.source}",
            )
    if not above:
        yield Mount(source=folder, target=folder, read_only=False, where=where)


def _gpus(context: Context, topology: Topology) -> Literal["nvidia", "amd"] | None:
    """Return the vendor whose libraries are mounted; NVIDIA if the vendor is unknown."""
    vendor = vendor_of(context, topology) or "nvidia"
    return vendor if vendor in ("nvidia", "amd") else None
