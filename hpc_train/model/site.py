"""SiteProfile: what a cluster offers, demands and forbids."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from hpc_train.model.job import Count, Gpus, Name, Nodes, Word
from hpc_train.model.network import EnvBlock, Network
from hpc_train.model.units import Duration, Memory
from hpc_train.model.value import Value

Confidence = Literal["high", "medium", "low"]


class Partition(Value, frozen=True, kw_only=True):
    """A queue and the nodes behind it; what is absent is unknown."""

    name: Word
    default: bool = False
    max_nodes: Nodes | None = None
    max_time: Duration | None = None
    cpus_per_node: Annotated[
        Count | None, Meta(description="Cores that a job may use on one node.")
    ] = None
    gpus_per_node: Gpus | None = None
    gpu_type: Word | None = None
    mem_per_node: Memory | None = None


class Launchers(Value, frozen=True, kw_only=True):
    """Which launchers the site has, which it prefers and which it forbids, and why."""

    default: Word
    allowed: tuple[Word, ...]
    forbidden: Annotated[dict[str, str], Meta(description="launcher -> the site's reason")] = {}
    srun_args: tuple[str, ...] = ()
    mpi: Annotated[
        Word | None, Meta(description="srun --mpi=…: pmix, pmi2, cray_shasta, none.")
    ] = None


class Rendezvous(Value, frozen=True, kw_only=True):
    """Where the ranks meet: how rank 0's host is named and which ports are tried.

    The ports should lie outside Linux's ephemeral range, 32768-60999 by default.
    """

    host: Annotated[
        Literal["loopback", "first-host"],
        Meta(description="first-host: the first name of the job's node list."),
    ] = "first-host"
    suffix: Annotated[str, Meta(description="Appended to the host name, e.g. 'i'.")] = ""
    port: Annotated[int, Meta(ge=1024, le=65535, description="First port tried.")] = 61000
    ports: Annotated[int, Meta(ge=1, le=60000, description="How many ports may be tried.")] = 4000


class Limits(Value, frozen=True, kw_only=True):
    """What the site allows one user, where it is known; Slurm's own MaxArraySize counts, too."""

    max_array_size: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        Meta(description="Largest number of a job array's element, plus one."),
    ] = None
    max_array_running: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="Elements of one array that run at once."),
    ] = None
    max_submit_jobs: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="Jobs in the queue at once, each array element one."),
    ] = None


class Source(Value, frozen=True, kw_only=True):
    """Where facts of the profile come from."""

    what: str
    date: Annotated[str, Meta(pattern=r"^\d{4}-\d{2}-\d{2}$")]
    confidence: Confidence


class SiteProfile(Value, frozen=True, kw_only=True):
    """One site, as sysadmins write it in site_profiles/NAME.yaml."""

    schema: Annotated[Literal[1], Meta(description="Version of this format.")]
    name: Name
    description: str
    scheduler: Literal["local", "slurm"]
    contact: str | None = None
    url: str | None = None
    sources: tuple[Source, ...] = ()
    launchers: Launchers
    partitions: tuple[Partition, ...] = ()
    account_required: bool = False
    gpu_request: Annotated[
        Literal["gpus-per-node", "gres"], Meta(description="Slurm option that asks for GPUs.")
    ] = "gpus-per-node"
    mem_request: Annotated[
        Literal["allowed", "forbidden"], Meta(description="Whether --mem may be given.")
    ] = "allowed"
    rendezvous: Rendezvous = Rendezvous()
    limits: Limits = Limits()
    network: Network | None = None
    poll: Annotated[
        Duration | None,
        Meta(description="Least time between two questions to the scheduler; default: 30 s."),
    ] = None
    slurm_conf: Annotated[
        str | None, Meta(description="Path of slurm.conf, where the commands do not find it.")
    ] = None
    env: dict[str, str | int | float] = {}
    env_why: Annotated[dict[str, str], Meta(description="Variable -> why the site sets it.")] = {}
    env_blocks: Annotated[
        tuple[EnvBlock, ...], Meta(description="More variables, each block for some jobs.")
    ] = ()
    setup: tuple[str, ...] = ()
