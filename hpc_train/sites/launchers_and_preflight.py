"""Launchers, Rendezvous, Preflight: launchers of a site, rendezvous of ranks, checks of nodes."""

from typing import Annotated, Literal

from msgspec import Meta

from hpc_train.base.units import Duration, Memory
from hpc_train.base.value import Value
from hpc_train.base.version_ranges import Version
from hpc_train.jobs.job import LauncherName, OneWord

HOST_METHOD = (
    r"^(loopback|first-host|batch-host|hostname-ip|resolver|(remote-)?address:[1-9]"
    r"|interface:[A-Za-z0-9][A-Za-z0-9_.-]*)$"
)
Template = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]*\.j2$(?!\n)",
        description="File name of the template of the job script, e.g. mysite.sbatch.j2.",
    ),
]


class Launchers(Value, frozen=True, kw_only=True):
    """The launchers of a site: allowed, default and forbidden ones, with reasons."""

    default: Annotated[LauncherName, Meta(description="Used if a job names none.")]
    allowed: Annotated[tuple[LauncherName, ...], Meta(description="Launchers that a job may name.")]
    forbidden: Annotated[dict[str, str], Meta(description="launcher -> the site's reason")] = {}
    warned: Annotated[
        dict[str, str], Meta(description="launcher -> why the site advises against it")
    ] = {}
    srun_args: Annotated[
        tuple[str, ...],
        Meta(description="More options of each srun, which has --kill-on-bad-exit=1 --wait=60."),
    ] = ()
    mpi: Annotated[
        OneWord | None,
        Meta(description="srun --mpi=… for MPI: pmix, pmi2, cray_shasta, none."),
    ] = None
    cpu_bind: Annotated[
        OneWord | None, Meta(description="srun --cpu-bind=… of a rank, if the partition has none.")
    ] = None
    gpu_bind: Annotated[
        OneWord | None, Meta(description="srun --gpu-bind=… of a rank that has one GPU.")
    ] = None
    numa_binding: Annotated[
        Literal["node", "socket", "exclusive", "core-complex"] | None,
        Meta(description="torchrun --numa-binding=…, from torch 2.9 on."),
    ] = None
    openmpi: Annotated[
        Version | None, Meta(description="Open MPI's version: '4.1', '5'; default: 4.")
    ] = None
    bind_to: Annotated[
        Literal["none", "core", "numa", "socket", "package"],
        Meta(description="mpirun --bind-to …; core gives a rank cpus_per_task cores."),
    ] = "none"
    mpirun_args: Annotated[tuple[str, ...], Meta(description="More options of mpirun.")] = ()


class Rendezvous(Value, frozen=True, kw_only=True):
    """Rendezvous of the ranks: how rank 0's host is found and which ports are tried.

    The ports should be outside Linux's ephemeral range, 32768-60999 by default.
    """

    host: Annotated[
        str,
        Meta(
            description="How rank 0's address is found: loopback, first-host, batch-host, "
            "hostname-ip, resolver, address:N, remote-address:N or interface:NAME.",
            extra_json_schema={"pattern": HOST_METHOD},
        ),
    ] = "first-host"
    suffix: Annotated[str, Meta(description="Appended to the host name, e.g. 'i'.")] = ""
    port: Annotated[int, Meta(ge=1024, le=65535, description="First port tried.")] = 61000
    ports: Annotated[int, Meta(ge=1, le=60000, description="How many ports may be tried.")] = 4000


class PluginCheck(Value, frozen=True, kw_only=True):
    """A variable that forces a plug-in of NCCL, its value, and what provides the plug-in."""

    name: str
    value: str
    provider: str


class Preflight(Value, frozen=True, kw_only=True):
    """Checks of all nodes in parallel, before the ranks start; missing keys are not checked."""

    gpus: Annotated[bool, Meta(description="The node has the requested number of GPUs.")] = True
    program: Annotated[
        bool, Meta(description="The job's program, or its image, is on the node.")
    ] = True
    names: Annotated[
        bool, Meta(description="The node resolves rank 0's host, and that host resolves the node.")
    ] = True
    interfaces: Annotated[
        tuple[OneWord, ...], Meta(description="Network interfaces that exist and are up.")
    ] = ()
    hcas: Annotated[
        tuple[OneWord, ...],
        Meta(description="InfiniBand adapters that need an active port: mlx5_0."),
    ] = ()
    space: Annotated[
        dict[Annotated[str, Meta(pattern=r"^/[^\x00-\x1f]*$(?!\n)")], Memory],
        Meta(description="Folder -> required free space: /dev/shm: 1G."),
    ] = {}
    memlock: Annotated[
        bool, Meta(description="`ulimit -l` is unlimited, as InfiniBand needs it.")
    ] = False
    clock: Annotated[
        Duration | None, Meta(description="Allowed deviation of a node's clock, e.g. 2s.")
    ] = None
    timeout: Annotated[
        Duration | None, Meta(description="Timeout of a node's answer; default: 30 s.")
    ] = None
