"""Container and Containers: the image of a job, and the container runtime of a site."""

from typing import Annotated, Literal

from msgspec import Meta

from hpc_train.base.value import Value
from hpc_train.base.variable_names_and_secrets import Variable

ContainerRuntime = Literal["apptainer", "singularity", "pyxis", "podman-hpc", "shifter", "edf"]
OneLine = Annotated[
    str, Meta(min_length=1, pattern=r"^[^\x00-\x1f\x7f]*$(?!\n)", description="One line of text.")
]
Mounts = Annotated[
    tuple[OneLine, ...],
    Meta(description="Host folders that the ranks see: PATH, SOURCE:TARGET or SOURCE:TARGET:ro."),
]


class Container(Value, frozen=True, kw_only=True):
    """The image of a job, independent of the runtime."""

    image: Annotated[
        OneLine, Meta(description="File or name of the image, as the site's runtime takes it.")
    ]
    mounts: Mounts = ()
    workdir: Annotated[
        OneLine | None, Meta(description="Where the command runs inside; default: as outside.")
    ] = None
    env: Annotated[
        tuple[Variable, ...],
        Meta(description="Variables of your shell that the image must not override."),
    ] = ()
    writable: Annotated[bool, Meta(description="Let ranks write into their image.")] = False


class Containers(Value, frozen=True, kw_only=True):
    """How the site runs images."""

    runtime: Annotated[ContainerRuntime, Meta(description="The container runtime.")]
    program: Annotated[
        OneLine | None, Meta(description="Its program, if it has another name than the runtime.")
    ] = None
    setup: Annotated[
        tuple[str, ...], Meta(description="Shell lines for jobs with a container: module load …")
    ] = ()
    args: Annotated[tuple[str, ...], Meta(description="More options of the runtime.")] = ()
    verb: Annotated[
        Literal["exec", "run"] | None,
        Meta(
            description="Of apptainer and singularity: exec, the default, or run, by the image's "
            "own start-up script."
        ),
    ] = None
    host_drivers: Annotated[
        bool, Meta(description="Whether apptainer and singularity get --nv or --rocm.")
    ] = True
    mounts: Mounts = ()
    mpi: Annotated[
        OneLine | None,
        Meta(description="srun --mpi=… for MPI ranks in containers; default: as outside."),
    ] = None
