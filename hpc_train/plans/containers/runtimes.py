"""How each runtime mounts folders and opens an image: a command, or options of srun."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal

from hpc_train.errors import PlanError
from hpc_train.model.plan import JobVar, Joined, Text, Token
from hpc_train.model.value import Value

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


def own(variable: str) -> Joined:
    """Return the mount of a folder that is known only inside the job, at the same path."""
    name = JobVar(name=variable)
    return Joined(parts=(name, Text(text=":"), name))


def parse_mount(text: str, where: str) -> Mount:
    """Parse a mount.

    Raises:
        PlanError: it does not have one to three parts, or its path is relative or needs a shell.
    """
    parts = text.split(":")
    mode = parts.pop() if len(parts) == 3 else "rw"
    if len(parts) > 2 or mode not in _MODES or not all(parts):
        raise PlanError(f"{where}: the mount {text!r} is none; {_FORM}")
    for path in parts:
        check_whole(path, where)
    return Mount(source=parts[0], target=parts[-1], read_only=mode == "ro", where=where)


def check_whole(path: str, where: str) -> None:
    """Refuse a relative path, and a path that only a shell would expand.

    Raises:
        PlanError: it is relative, or needs a shell.
    """
    if not path.startswith("/"):
        raise PlanError(f"{where}: {path!r} must be a whole path, from / on; no shell reads it")
    if "$" in path:
        raise PlanError(f"{where}: {path!r}: no shell reads it; write out what $… stands for")


def check_characters(path: str, forbidden: str, runtime: str, where: str) -> None:
    """Refuse characters that a runtime would parse as the end of a path.

    Raises:
        PlanError: one of `forbidden` is in the path.
    """
    found = [character for character in forbidden if character in path]
    if found:
        raise PlanError(
            f"{where}: {runtime} cannot carry {found[0]!r} in a path: {path!r}",
            "use another name for the folder, or a link to it",
        )


RUN, HERE, BACKEND, VENDORS = "HPCTRAIN_RUN", "PWD", "HPCTRAIN_BACKEND", "vendor_names"
# Variables that a rank's wrapper sets; some runtimes need them as options.
RANK_NAMES = (
    "RANK",
    "WORLD_SIZE",
    "LOCAL_RANK",
    "LOCAL_WORLD_SIZE",
    "NODE_RANK",
    "NNODES",
)
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
        return (*map(own, self.own_folders), *(mount.token() for mount in self.mounts))


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


def _texts(*words: str) -> tuple[Token, ...]:
    return tuple(Text(text=word) for word in words)


def _apptainer(request: ContainerRequest) -> tuple[Token, ...]:
    """--writable-tmpfs, because --writable requires an image that is a folder."""
    flags = {"nvidia": ("--nv",), "amd": ("--rocm",), None: ()}[request.gpus]
    own_folders: Iterable[Token] = (JobVar(name=name) for name in request.own_folders)
    binds = (*own_folders, *(mount.token() for mount in request.mounts))
    return (
        *_texts(request.program, request.verb, *flags),
        *_texts(*(["--writable-tmpfs"] if request.writable else [])),
        *(word for bind in binds for word in (Text(text="--bind"), bind)),
        Text(text="--pwd"),
        request.place(),
        *_texts(*request.args, request.image),
    )


def _podman(request: ContainerRequest) -> tuple[Token, ...]:
    """One container per rank: to communicate, they need the host's network, memory and process "
    "ids."""
    backend = () if request.plain else (BACKEND,)
    names = (*RANK_NAMES, *backend, *_MPI_NAMES, *request.of_ranks, *request.passed)
    return (
        *_texts(request.program, "run", "--rm", "--net=host", "--ipc=host", "--pid=host"),
        *_texts(*(["--gpu"] if request.gpus else [])),
        *(word for one in request.all_mounts() for word in (Text(text="--volume"), one)),
        Text(text="--workdir"),
        request.place(),
        *_texts(*(word for name in dict.fromkeys(names) for word in ("--env", name))),
        *_texts(*request.args, request.image),
    )


def _shifter(request: ContainerRequest) -> tuple[Token, ...]:
    """It mounts the site's file systems by default, and refuses a second mount of them."""
    return (
        *_texts(request.program, f"--image={request.image}"),
        *_texts(*(["--module=gpu"] if request.gpus else [])),
        *(Joined(parts=(Text(text="--volume="), mount.token())) for mount in request.mounts),
        Joined(parts=(Text(text="--workdir="), request.place())),
        *(
            Joined(parts=(Text(text=f"--env={name}="), JobVar(name=name)))
            for name in request.passed
            # Changes by a rank's wrapper are not known yet at this point.
            if name not in (*request.private, *request.of_ranks)
        ),
        *_texts(*request.args),
    )


def _pyxis(request: ContainerRequest) -> tuple[Token, ...]:
    """--container-env, because otherwise a variable of the image takes precedence."""
    mounts: list[Text | JobVar] = [Text(text="--container-mounts=")]
    for number, mount in enumerate(request.all_mounts()):
        mounts += [Text(text=",")] if number else []
        mounts += mount.parts if isinstance(mount, Joined) else (mount,)
    return (
        *_texts(f"--container-image={request.image}"),
        Joined(parts=tuple(mounts)),
        Joined(parts=(Text(text="--container-workdir="), request.place())),
        _container_env(request),
        *_texts(*(["--container-writable"] if request.writable else [])),
        *_texts(*request.args),
    )


def _container_env(request: ContainerRequest) -> Token:
    names = Text(text=f"--container-env={','.join(request.passed)}")
    return Joined(parts=(names, JobVar(name=VENDORS))) if request.vendors else names


def _edf(request: ContainerRequest) -> tuple[Token, ...]:
    """The script writes an environment definition that extends the image's with the job's "
    "mounts."""
    option = Text(text="--environment=")
    path = (JobVar(name="edf"),) if request.plain else (JobVar(name=RUN), Text(text="/edf.toml"))
    return (Joined(parts=(option, *path)), *_texts(*request.args))


FORMS = {
    "apptainer": RuntimeForm(words=_apptainer, prefix="APPTAINERENV_", forbidden=":,"),
    "singularity": RuntimeForm(words=_apptainer, prefix="SINGULARITYENV_", forbidden=":,"),
    "podman-hpc": RuntimeForm(words=_podman),
    "shifter": RuntimeForm(words=_shifter, forbidden=":; \t", writable=False),
    "pyxis": RuntimeForm(words=_pyxis, by_srun=True, forbidden=":, \t"),
    "edf": RuntimeForm(words=_edf, by_srun=True, forbidden=":$"),
}
