"""Network and EnvBlock: what a site's fabric is, and what its environment needs on which jobs."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from hpc_train.model.job import Word
from hpc_train.model.value import Value
from hpc_train.model.variable import Variable
from hpc_train.model.versions import GdrLevel, NodeBounds, Version, VersionBounds

Fabric = Literal[
    "infiniband", "roce", "slingshot", "efa", "gcp-tcpx", "gcp-tcpxo", "gcp-gib", "ethernet"
]
Vendor = Literal["nvidia", "amd", "none"]
Runtime = Literal["nccl", "rccl", "gloo", "mpi", "ucx"]
Scope = Literal["job", "ranks", "launcher"]
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
        description="Name of a host adapter, with a port if need be: mlx5_0, mlx5_0:1.",
    ),
]
Byte = Annotated[int, Meta(ge=0, le=255)]


class Network(Value, frozen=True, kw_only=True):
    """What connects the nodes; without a fabric nothing is set."""

    fabric: Annotated[Fabric | None, Meta(description="What NCCL is to use between nodes.")] = None
    interfaces: Annotated[
        tuple[Interface, ...], Meta(description="Where NCCL and gloo open their sockets.")
    ] = ()
    exclude_interfaces: Annotated[
        tuple[Interface, ...], Meta(description="Where NCCL must not open sockets; by prefix.")
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
    plugin: Annotated[Word | None, Meta(description="NCCL_NET_PLUGIN: a suffix or a path.")] = None
    script: Annotated[
        Annotated[str, Meta(pattern=r"^/[^\n]*$(?!\n)")] | None,
        Meta(description="The vendor's script of settings, by its whole path; it is sourced."),
    ] = None
    nccl: Annotated[
        Version | None, Meta(description="NCCL's version, on AMD that which RCCL is based on.")
    ] = None
    gpus: Annotated[Vendor | None, Meta(description="Whose GPUs; default: by gpu_type.")] = None
    ip_over_ib: Annotated[
        bool | None, Meta(description="Whether InfiniBand carries IP, which gloo needs.")
    ] = None
    torch_mpi: Annotated[
        bool | None, Meta(description="Whether the site's torch was built with MPI.")
    ] = None


class When(Value, frozen=True, kw_only=True):
    """Jobs that a block is for: all that is said must hold, of a list one."""

    nodes: Annotated[NodeBounds | None, Meta(description="1, '>1', '>=2,<16'.")] = None
    # Not `Word | …`: a text with a pattern beside a list lets msgspec 0.22 crash when the
    # interpreter ends.
    partition: Annotated[
        str | tuple[Word, ...] | None, Meta(description="The job's partition.")
    ] = None
    launcher: Annotated[str | tuple[Word, ...] | None, Meta(description="The job's launcher.")] = (
        None
    )
    runtime: Annotated[
        Runtime | tuple[Runtime, ...] | None, Meta(description="What moves the ranks' data.")
    ] = None
    vendor: Annotated[
        Vendor | tuple[Vendor, ...] | None, Meta(description="Whose GPUs the job has.")
    ] = None
    nccl: Annotated[
        VersionBounds | None, Meta(description="Versions of network.nccl: '>=2.21,<2.30'.")
    ] = None
    container: Annotated[bool | None, Meta(description="Whether ranks run in a container.")] = None


class EnvBlock(Value, frozen=True, kw_only=True):
    """Variables for the jobs that `when` describes, or a note that they are set already."""

    when: When = When()
    scope: Annotated[Scope, Meta(description="Who is to see them.")] = "job"
    env: Annotated[dict[str, str | int | float], Meta(description="What is set.")] = {}
    unset: Annotated[tuple[Variable, ...], Meta(description="What is taken away.")] = ()
    already_set_by: Annotated[
        str | None, Meta(description="What sets env on this site, so that nothing is written.")
    ] = None
    mode: Annotated[Mode, Meta(description="What becomes of a value that is there.")] = "set"
    separator: Annotated[Separator, Meta(description="Between items; prepend and append.")] = ":"
    why: Annotated[str, Meta(description="Shown by `explain`.")] = ""
    source: Annotated[str, Meta(description="Where that is written.")] = ""
