"""Transport: what NCCL used to move data between GPUs according to its log, with findings."""

from hpc_train.base.finding import Finding, Severity
from hpc_train.base.value import Value


class Adapter(Value, frozen=True, kw_only=True, forbid_unknown_fields=False):
    """A host adapter that NCCL listed: `mlx5_0:1`, its link layer (`IB`, `RoCE`)."""

    name: str
    link_layer: str


class TransportFinding(Finding, frozen=True, kw_only=True):
    """A slow transport, or one not as in the site profile; `evidence` are places, `file:line`."""

    severity: Severity
    evidence: tuple[str, ...] = ()


class Transport(Value, frozen=True, kw_only=True, forbid_unknown_fields=False):
    """Summary of the NCCL, RCCL and plug-in lines of a run's logs.

    `channels` counts channels by kind (`NET/IB/GDRDMA`, `P2P/CUMEM`, `SHM`), `between_nodes` those
    whose ends are on different nodes. `using_network` counts the ranks that chose each network,
    used or not. `nodes` and `ranks` are those of the largest communicator; None if no line states
    them. `verdict` is short: `IB+GDR`, `sockets`, `NVLink`; it is empty if no line states the
    transport. `nvlink`: a line says that GPUs of a node reach one another by NVLink, with `rccl` by
    xGMI. `first` gives the first line of each kind of fact. Files of earlier versions have further
    fields, which are ignored.
    """

    verdict: str = ""
    findings: tuple[TransportFinding, ...] = ()
    nccl_version: tuple[str, ...] = ()
    ranks: int | None = None
    nodes: int | None = None
    hosts: tuple[str, ...] = ()
    using_network: dict[str, int] = {}
    channels: dict[str, int] = {}
    between_nodes: dict[str, int] = {}
    nvlink: bool = False
    rccl: bool = False
    adapters: tuple[Adapter, ...] = ()
    interfaces: tuple[str, ...] = ()
    plugins: tuple[str, ...] = ()
    plugin_missing: bool = False
    ofi_version: str = ""
    provider: str = ""
    without_gdr: tuple[str, ...] = ()
    gdr_only_received: bool = False
    environment: dict[str, str] = {}
    first: dict[str, str] = {}

    def places(self, *kinds: str) -> tuple[str, ...]:
        """Return the first line of each of these kinds of fact, if there is one."""
        return tuple(self.first[kind] for kind in kinds if kind in self.first)
