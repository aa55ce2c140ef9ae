"""Network and EnvBlock: the fabric of a site, and variables for some of its jobs."""

from typing import Annotated, Literal

from msgspec import Meta

from hpc_train.base.value import Value
from hpc_train.base.variable_names_and_secrets import Variable
from hpc_train.base.version_ranges import GdrLevel, NodeBounds, Version, VersionBounds
from hpc_train.jobs.job import OneWord

Fabric = Literal[
    "infiniband", "roce", "slingshot", "efa", "gcp-tcpx", "gcp-tcpxo", "gcp-gib", "ethernet"
]
Vendor = Literal["nvidia", "amd", "intel", "none"]
Runtime = Literal["nccl", "rccl", "gloo", "mpi", "ucx"]
EnvScope = Literal["job", "ranks", "launcher"]
Mode = Literal["set", "default", "prepend", "append"]
Separator = Literal[":", ",", ";", " "]
Interface = Annotated[
    str,
    Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$(?!\n)", description="Name of a network interface."),
]
Hca = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*(:[0-9]+){0,3}$(?!\n)",
        description="Name of a host adapter, with an optional port: mlx5_0, mlx5_0:1.",
    ),
]
Byte = Annotated[int, Meta(ge=0, le=255)]


class Network(Value, frozen=True, kw_only=True):
    """The network between the nodes; without a fabric nothing is set."""

    fabric: Annotated[Fabric | None, Meta(description="Fabric that NCCL uses between nodes.")] = (
        None
    )
    interfaces: Annotated[
        tuple[Interface, ...], Meta(description="Interfaces for the sockets of NCCL and gloo.")
    ] = ()
    exclude_interfaces: Annotated[
        tuple[Interface, ...], Meta(description="Interfaces that NCCL must not use, by prefix.")
    ] = ()
    hcas: Annotated[tuple[Hca, ...], Meta(description="Host adapters for the ranks' data.")] = ()
    gdr_level: Annotated[
        GdrLevel | None, Meta(description="NCCL_NET_GDR_LEVEL: LOC, PIX, PXB, PHB or SYS.")
    ] = None
    gid_index: Annotated[
        Byte | None, Meta(description="NCCL_IB_GID_INDEX for NCCL below 2.21 on RoCE.")
    ] = None
    traffic_class: Annotated[Byte | None, Meta(description="NCCL_IB_TC on RoCE.")] = None
    alt_read: Annotated[
        bool, Meta(description="Slingshot: alternative rendezvous, with its --network option.")
    ] = False
    plugin: Annotated[OneWord | None, Meta(description="NCCL_NET_PLUGIN: a suffix or a path.")] = (
        None
    )
    plugin_from: Annotated[
        str | None,
        Meta(description="What provides NCCL's plug-in, for messages: module nccl."),
    ] = None
    script: Annotated[
        Annotated[str, Meta(pattern=r"^/[^\n]*$(?!\n)")] | None,
        Meta(description="Absolute path of the vendor's settings script, which is sourced."),
    ] = None
    nccl: Annotated[
        Version | None, Meta(description="Version of NCCL; on AMD the one that RCCL is based on.")
    ] = None
    gpus: Annotated[
        Vendor | None, Meta(description="Vendor of the GPUs; default: by gpu_type.")
    ] = None
    ip_over_ib: Annotated[
        bool | None, Meta(description="Whether InfiniBand carries IP, which gloo needs.")
    ] = None
    torch_mpi: Annotated[
        bool | None, Meta(description="Whether the site's torch was built with MPI.")
    ] = None


class When(Value, frozen=True, kw_only=True):
    """Jobs that a block applies to: all conditions must hold; of a list, one value must match."""

    nodes: Annotated[NodeBounds | None, Meta(description="1, '>1', '>=2,<16'.")] = None
    # Not `OneWord | …`: with a union of a list and a text with a pattern, msgspec 0.22 crashes when
    # the interpreter exits.
    partition: Annotated[
        str | tuple[OneWord, ...] | None, Meta(description="The job's partition.")
    ] = None
    launcher: Annotated[
        str | tuple[OneWord, ...] | None, Meta(description="The job's launcher.")
    ] = None
    runtime: Annotated[
        Runtime | tuple[Runtime, ...] | None,
        Meta(description="Library that transfers the ranks' data."),
    ] = None
    vendor: Annotated[
        Vendor | tuple[Vendor, ...] | None, Meta(description="Vendor of the job's GPUs.")
    ] = None
    nccl: Annotated[
        VersionBounds | None, Meta(description="Versions of network.nccl: '>=2.21,<2.30'.")
    ] = None
    container: Annotated[bool | None, Meta(description="Whether ranks run in a container.")] = None


class EnvBlock(Value, frozen=True, kw_only=True):
    """Variables for the jobs that `when` describes, or a note that they are already set."""

    when: When = When()
    scope: Annotated[EnvScope, Meta(description="Processes that get them.")] = "job"
    env: Annotated[dict[str, str | int | float], Meta(description="Variables to set.")] = {}
    unset: Annotated[tuple[Variable, ...], Meta(description="Variables to unset.")] = ()
    already_set_by: Annotated[
        str | None,
        Meta(description="What already sets `env` on this site, so that nothing is written."),
    ] = None
    mode: Annotated[Mode, Meta(description="How an existing value is treated.")] = "set"
    separator: Annotated[Separator, Meta(description="Between items; prepend and append.")] = ":"
    why: Annotated[str, Meta(description="Shown by `explain`.")] = ""
    source: Annotated[str, Meta(description="Source of the values.")] = ""
