"""Hardware: devices and limits of one machine, as reported by its tools."""

from typing import Literal

from hpc_train.base.value import Value
from hpc_train.plans.node_topology import NodeTopology

Layer = Literal["InfiniBand", "Ethernet", "other"]


class Processor(Value, frozen=True, kw_only=True):
    """Sockets, cores and threads."""

    model: str
    cpus: int
    sockets: int | None
    cores_per_socket: int | None
    threads_per_core: int | None


class Gpu(Value, frozen=True, kw_only=True):
    """A GPU, or half of one if the driver counts halves; `bus` is its PCI address."""

    index: int
    name: str
    memory_mib: int | None = None
    driver: str = ""
    vendor: Literal["nvidia", "amd"] = "nvidia"
    bus: str = ""


class Link(Value, frozen=True, kw_only=True):
    """A network interface; `virtual` if it has no physical port."""

    name: str
    up: bool
    kind: Literal["ethernet", "infiniband", "loopback", "other"]
    addresses: tuple[str, ...] = ()
    mbps: int | None = None
    virtual: bool = False


class Port(Value, frozen=True, kw_only=True):
    """A port of a host adapter."""

    adapter: str
    number: int
    active: bool
    gbps: int | None
    layer: Layer
    driver: str = ""


class Disk(Value, frozen=True, kw_only=True):
    """A file system of the node itself."""

    path: str
    kind: str
    size_mib: int
    free_mib: int


class Torch(Value, frozen=True, kw_only=True):
    """The torch that `python` imports."""

    version: str
    backends: tuple[str, ...]
    cuda: str = ""
    hip: str = ""
    nccl: str = ""
    devices: int = 0


class Software(Value, frozen=True, kw_only=True):
    """Programs on the PATH, and their versions."""

    programs: tuple[str, ...] = ()
    modules: str = ""
    pyxis: bool = False
    mpirun: str = ""
    mpirun_knows_slurm: bool | None = None
    torch: Torch | None = None


class ProcessLimits(Value, frozen=True, kw_only=True):
    """Limits of the shell and the system; `memlock_kib` is -1 for unlimited."""

    memlock_kib: int | None = None
    open_files: int | None = None
    shm_mib: int | None = None
    memory_mib: int | None = None


class Hardware(Value, frozen=True, kw_only=True):
    """One machine; `unread` lists errors of tools, `reached` says whether a host was reached."""

    host: str
    arch: str = ""
    processor: Processor | None = None
    gpus: tuple[Gpu, ...] = ()
    topology: NodeTopology = NodeTopology()
    links: tuple[Link, ...] = ()
    ports: tuple[Port, ...] = ()
    disks: tuple[Disk, ...] = ()
    software: Software = Software()
    limits: ProcessLimits = ProcessLimits()
    reached: bool | None = None
    unread: tuple[str, ...] = ()
