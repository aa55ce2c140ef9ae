"""The container of a job: its image, and the runtime of the site."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Literal

from hpc_train.base.errors import PlanError
from hpc_train.base.values import Value
from hpc_train.base.variable_names_and_secrets import FROM_SCRIPT, RENDEZVOUS
from hpc_train.jobs.job import Container, Containers, SourcedJob, Topology
from hpc_train.plans.context import Context, from_site, known, other_launchers
from hpc_train.plans.environment import JobEnvironment
from hpc_train.plans.launchers.base import texts
from hpc_train.plans.lifecycle import CHECKPOINTS, lifecycle_variables
from hpc_train.plans.network import vendor_of
from hpc_train.plans.plan import ContainerPlan, JobVar, Joined, Setting, Text, Token
from hpc_train.sites.profile import SourcedSite


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
    offered = site.value.containers
    if offered is None:
        raise PlanError(
            f"{job.near('container')}: {site.value.name} states no container runtime",
            f"add `containers: {{runtime: apptainer}}` to the profile; known: {', '.join(FORMS)}",
        )
    form, env = FORMS[offered.runtime], environment.variables
    _check(job, wanted, form, offered.runtime)
    of_script = (*(RENDEZVOUS if context.plain else FROM_SCRIPT), *lifecycle_variables(context))
    # The vendor whose libraries are mounted.
    vendor = vendor_of(context, topology) or "nvidia"
    request = ContainerRequest(
        program=offered.program or offered.runtime,
        image=wanted.image,
        mounts=tuple(_mounts(context, wanted, offered, env)),
        workdir=wanted.workdir,
        writable=wanted.writable,
        gpus=vendor if offered.host_drivers and vendor in ("nvidia", "amd") else None,
        passed=tuple(dict.fromkeys((*of_script, *env, *job.value.secrets, *wanted.env))),
        private=tuple(job.value.secrets),
        of_ranks=tuple(dict.fromkeys(c.name for c in environment.changes if c.scope == "ranks")),
        vendors=environment.script is not None,
        args=offered.args,
        verb=offered.verb or "exec",
        plain=context.plain,
    )
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
    image = Setting(value=wanted.image, origin=job.near("container.image"))
    runtime = from_site(site, "containers.runtime", offered.runtime if offered else None)
    return known({"container.image": image, "container.runtime": runtime})


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
    for key in ("mounts", "workdir", "env"):
        if getattr(wanted, key):
            raise PlanError(
                f"{context.job.near(f'container.{key}')}: container.{key}: {context.batch.title} "
                "starts the image without it",
                f"leave container.{key} out",
            )


def _check(job: SourcedJob, wanted: Container, form: RuntimeForm, runtime: str) -> None:
    if wanted.writable and not form.writable:
        raise PlanError(f"{job.near('container.writable')}: {runtime} has no writable images")
    if wanted.workdir:
        check_whole(wanted.workdir, job.near("container.workdir"))
    if runtime == "edf":
        check_characters(wanted.image, "$", runtime, job.near("container.image"))
    if job.value.workdir:
        check_characters(job.value.workdir, form.forbidden, runtime, job.near("workdir"))


def _mounts(
    context: Context, wanted: Container, offered: Containers, env: Mapping[str, Setting]
) -> Iterator[Mount]:
    job, site, runtime = context.job, context.site, offered.runtime
    asked = [(text, site.near(f"containers.mounts.{i}")) for i, text in enumerate(offered.mounts)]
    # NCCL reads its topology file inside the container.
    topology = env.get("NCCL_TOPO_FILE")
    if topology is not None:
        check_whole(str(topology.value), topology.origin)
        asked.append((f"{topology.value}:{topology.value}:ro", topology.origin))
    asked += [(text, job.near(f"container.mounts.{i}")) for i, text in enumerate(wanted.mounts)]
    mounts = [parse_mount(text, where) for text, where in asked]
    # Shifter mounts the file systems of the site itself.
    mounts += [] if runtime == "shifter" else _of_checkpoints(job, mounts)
    for mount in mounts:
        for path in (mount.source, mount.target):
            check_characters(path, FORMS[runtime].forbidden, runtime, mount.where)
        yield mount


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


_FORM = "write PATH, SOURCE:TARGET or SOURCE:TARGET:ro"
_MODES = ("ro", "rw")


class Mount(Value, frozen=True, kw_only=True):
    """A folder or file of the host, and its path for the ranks; `where` names its line."""

    source: str
    target: str
    read_only: bool
    where: str

    def token(self) -> Text:
        """Return the mount in the notation of the runtimes."""
        return Text(text=f"{self.source}:{self.target}{':ro' if self.read_only else ''}")


def parse_mount(text: str, where: str) -> Mount:
    """Parse a mount.

    Raises:
        PlanError: it does not have one to three parts, or its path is relative or needs a shell.
    """
    parts = text.split(":")
    mode = parts.pop() if len(parts) == 3 else "rw"
    if len(parts) > 2 or mode not in _MODES or not all(parts):
        raise PlanError(f"{where}: {text!r} is not a mount; {_FORM}")
    for path in parts:
        check_whole(path, where)
    return Mount(source=parts[0], target=parts[-1], read_only=mode == "ro", where=where)


def check_whole(path: str, where: str) -> None:
    """Refuse a relative path, and a path that only a shell would expand.

    Raises:
        PlanError: it is relative, or needs a shell.
    """
    if not path.startswith("/"):
        raise PlanError(f"{where}: {path!r} must be a whole path, from / on; no shell expands it")
    if "$" in path:
        raise PlanError(f"{where}: {path!r}: no shell expands it; write the value of $…")


def check_characters(path: str, forbidden: str, runtime: str, where: str) -> None:
    """Refuse characters that a runtime would parse as the end of a path.

    Raises:
        PlanError: one of `forbidden` is in the path.
    """
    found = [character for character in forbidden if character in path]
    if found:
        raise PlanError(
            f"{where}: {runtime} does not accept {found[0]!r} in a path: {path!r}",
            "use another name for the folder, or a link to it",
        )


RUN, HERE, BACKEND, VENDORS = "HPCTRAIN_RUN", "PWD", "HPCTRAIN_BACKEND", "vendor_names"
# Variables that a rank's wrapper sets; some runtimes need them as options.
RANK_NAMES = tuple("RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE NODE_RANK NNODES".split())
_MPI_NAMES = ("SLURM_*", "PMI*", "OMPI_*", "CROSS_*", "LOCAL_SIZE")


class ContainerRequest(Value, frozen=True, kw_only=True):
    """The request to a runtime; `workdir` is None if it is that of the host."""

    program: str
    image: str
    mounts: tuple[Mount, ...]
    workdir: str | None
    writable: bool
    gpus: Literal["nvidia", "amd"] | None
    passed: tuple[str, ...]
    # Those of them that must not appear on a command line.
    private: tuple[str, ...]
    of_ranks: tuple[str, ...]
    # Whether the vendor's script exports further variables, whose names are known only in the job.
    vendors: bool
    args: tuple[str, ...]
    verb: str = "exec"
    # Whether the script does not track the run.
    plain: bool = False

    @property
    def own_folders(self) -> tuple[str, ...]:
        """Return the variables of the folders that every image mounts."""
        return (HERE,) if self.plain else (RUN, HERE)

    def place(self) -> Text | JobVar:
        """Return the working folder inside the container."""
        return Text(text=self.workdir) if self.workdir else JobVar(name=HERE)

    def all_mounts(self) -> tuple[Text | Joined, ...]:
        """Return the mounts of the run's folder, the working folder and the requested folders."""
        names, colon = [JobVar(name=name) for name in self.own_folders], Text(text=":")
        own = (Joined(parts=(name, colon, name)) for name in names)
        return (*own, *(mount.token() for mount in self.mounts))


class RuntimeForm(Value, frozen=True, kw_only=True):
    """A container runtime: its arguments, and its restrictions.

    `by_srun`: Slurm opens the image, so that the wrapper runs inside it. `prefix` is added to a
    variable's name if the image's value would take precedence over an inherited one.
    """

    words: Callable[[ContainerRequest], tuple[Token, ...]]
    by_srun: bool = False
    prefix: str = ""
    forbidden: str = ":"
    writable: bool = True


def _apptainer(request: ContainerRequest) -> tuple[Token, ...]:
    """--writable-tmpfs, because --writable requires an image that is a folder."""
    flags = {"nvidia": ("--nv",), "amd": ("--rocm",), None: ()}[request.gpus]
    own_folders: Iterable[Token] = (JobVar(name=name) for name in request.own_folders)
    binds = (*own_folders, *(mount.token() for mount in request.mounts))
    return (
        *texts(request.program, request.verb, *flags),
        *texts(*(["--writable-tmpfs"] if request.writable else [])),
        *(word for bind in binds for word in (Text(text="--bind"), bind)),
        Text(text="--pwd"),
        request.place(),
        *texts(*request.args, request.image),
    )


def _podman(request: ContainerRequest) -> tuple[Token, ...]:
    """One container per rank: to communicate, they need the host's network, memory and process
    ids."""
    backend = () if request.plain else (BACKEND,)
    names = (*RANK_NAMES, *backend, *_MPI_NAMES, *request.of_ranks, *request.passed)
    return (
        *texts(request.program, "run", "--rm", "--net=host", "--ipc=host", "--pid=host"),
        *texts(*(["--gpu"] if request.gpus else [])),
        *(word for one in request.all_mounts() for word in (Text(text="--volume"), one)),
        Text(text="--workdir"),
        request.place(),
        *texts(*(word for name in dict.fromkeys(names) for word in ("--env", name))),
        *texts(*request.args, request.image),
    )


def _shifter(request: ContainerRequest) -> tuple[Token, ...]:
    """It mounts the site's file systems by default, and refuses a second mount of them."""
    return (
        *texts(request.program, f"--image={request.image}"),
        *texts(*(["--module=gpu"] if request.gpus else [])),
        *(Joined(parts=(Text(text="--volume="), mount.token())) for mount in request.mounts),
        Joined(parts=(Text(text="--workdir="), request.place())),
        *(
            Joined(parts=(Text(text=f"--env={name}="), JobVar(name=name)))
            for name in request.passed
            # Changes by a rank's wrapper are not known yet at this point.
            if name not in (*request.private, *request.of_ranks)
        ),
        *texts(*request.args),
    )


def _pyxis(request: ContainerRequest) -> tuple[Token, ...]:
    """--container-env, because otherwise a variable of the image takes precedence."""
    names = Text(text=f"--container-env={','.join(request.passed)}")
    mounts: list[Text | JobVar] = [Text(text="--container-mounts=")]
    for number, mount in enumerate(request.all_mounts()):
        mounts += [Text(text=",")] if number else []
        mounts += mount.parts if isinstance(mount, Joined) else (mount,)
    return (
        *texts(f"--container-image={request.image}"),
        Joined(parts=tuple(mounts)),
        Joined(parts=(Text(text="--container-workdir="), request.place())),
        Joined(parts=(names, JobVar(name=VENDORS))) if request.vendors else names,
        *texts(*(["--container-writable"] if request.writable else [])),
        *texts(*request.args),
    )


def _edf(request: ContainerRequest) -> tuple[Token, ...]:
    """The script writes an environment definition that extends the image's with the job's
    mounts."""
    option = Text(text="--environment=")
    path = (JobVar(name="edf"),) if request.plain else (JobVar(name=RUN), Text(text="/edf.toml"))
    return (Joined(parts=(option, *path)), *texts(*request.args))


FORMS = {
    "apptainer": RuntimeForm(words=_apptainer, prefix="APPTAINERENV_", forbidden=":,"),
    "singularity": RuntimeForm(words=_apptainer, prefix="SINGULARITYENV_", forbidden=":,"),
    "podman-hpc": RuntimeForm(words=_podman),
    "shifter": RuntimeForm(words=_shifter, forbidden=":; \t", writable=False),
    "pyxis": RuntimeForm(words=_pyxis, by_srun=True, forbidden=":, \t"),
    "edf": RuntimeForm(words=_edf, by_srun=True, forbidden=":$"),
}
