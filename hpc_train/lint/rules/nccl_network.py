"""Rules on how NCCL finds its network: devices, interfaces, plug-ins."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hpc_train.lint.job_script import JobScript
from hpc_train.lint.rule import RuleHit, Subject, rule
from hpc_train.model.version_ranges import older

_GEFORCE = re.compile(r"rtx|geforce|\b[2345]0[6789]0(?:ti)?\b", re.IGNORECASE)
_LIBFABRIC = ("aws libfabric", "libfabric", "ofi")
_FABRICS = re.compile(r"efa|cxi|opx|verbs|psm[23x]")


@rule(
    "HT520",
    "info",
    "NCCL_IB_GID_INDEX",
    why="Since NCCL 2.21 the GID index is selected for each device; a fixed index is wrong on some "
    "ports, and queue pairs then fail (ibv_modify_qp: Invalid argument).",
    advice="leave it out with NCCL 2.21 or later, unless the site's documentation requires it",
)
def gid_index(subject: Subject) -> Iterator[RuleHit]:
    version = subject.context.nccl
    for found in subject.script.exported_values("NCCL_IB_GID_INDEX"):
        if found.value == "-1" or older(version, "2.21"):
            continue
        message = (
            f"NCCL_IB_GID_INDEX={found.value} disables the selection that NCCL makes since 2.21"
        )
        yield RuleHit(line=found.line, message=message, severity="warning" if version else None)


@rule(
    "HT521",
    "info",
    "NCCL_IB_HCA without =",
    why="The names are prefixes: on a node with more than ten devices mlx5_1 also matches mlx5_10, "
    "mlx5_11 and so on.",
    advice="write NCCL_IB_HCA==mlx5_1,… (the second = requests exact matches)",
)
def hca_prefix(subject: Subject) -> Iterator[RuleHit]:
    hcas = subject.context.hcas
    for found in subject.script.exported_values("NCCL_IB_HCA"):
        names = found.value.lstrip("^").split(",")
        short = [name for name in names if re.fullmatch(r"^[a-z]+\d*_[1-9](:\d+)?", name)]
        if found.value.lstrip("^").startswith("=") or not short or (hcas and hcas < 11):
            continue
        counted = f"; this site's nodes have {hcas} devices" if hcas else ""
        message = f"{short[0]} is a prefix of {short[0].partition(':')[0]}0{counted}"
        yield RuleHit(line=found.line, message=message, severity="warning" if hcas else None)


@rule(
    "HT522",
    "warning",
    "InfiniBand timeout or retry out of range",
    why="NCCL_IB_TIMEOUT is an exponent from 1 to 31, and with 0 or more than 31 NCCL waits "
    "forever on a dead link; NCCL_IB_RETRY_CNT has three bits, so 7 is the maximum.",
    advice="leave them out, or write e.g. NCCL_IB_TIMEOUT=22 and NCCL_IB_RETRY_CNT=7",
)
def ib_range(subject: Subject) -> Iterator[RuleHit]:
    for name, low, high in (("NCCL_IB_TIMEOUT", 1, 31), ("NCCL_IB_RETRY_CNT", 0, 7)):
        for found in subject.script.exported_values(name):
            if re.fullmatch(r"-?\d{1,9}", found.value) and not low <= int(found.value) <= high:
                message = f"{name}={found.value} is outside {low} to {high}"
                yield RuleHit(line=found.line, message=message)


@rule(
    "HT526",
    "warning",
    "libfabric as network of a one-node job",
    why="With NCCL_NET set to the libfabric plug-in, a job on one node fails or is slower: inside "
    "a node NCCL needs no network.",
    advice="set NCCL_NET only when the job has several nodes",
)
def net_on_one_node(subject: Subject) -> Iterator[RuleHit]:
    for found in subject.script.exported_values("NCCL_NET"):
        if found.value.lower() in _LIBFABRIC and subject.script.asked.nodes == 1:
            if subject.script.asked.has("nodes"):
                message = f"NCCL_NET={found.value!r}, but the job has one node"
                yield RuleHit(line=found.line, message=message)


@rule(
    "HT527",
    "info",
    "interface by name",
    why="NCCL_SOCKET_IFNAME takes prefixes: names differ between clusters and nodes, "
    "^docker0 alone includes the loopback interface again, and lo cannot reach other nodes.",
    advice="leave it out, use the interface of the site's profile, or exclude interfaces: "
    "NCCL_SOCKET_IFNAME=^lo,docker",
)
def interface_by_name(subject: Subject) -> Iterator[RuleHit]:
    script, fabric = subject.script, subject.context.fabric
    for found in subject.script.exported_values("NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME"):
        value = found.value
        if value == "lo" and _one_machine(subject):
            continue
        if value == "lo" and (script.asked.nodes or 1) > 1:
            message = f"{found.name}=lo cannot reach other nodes"
            yield RuleHit(line=found.line, message=message, severity="error")
        elif value.startswith("^") and "lo" not in value[1:].split(","):
            if found.name.startswith("NCCL") and script.asked.nodes != 1:
                message = f"{found.name}={value} includes lo"
                yield RuleHit(line=found.line, message=message, severity="warning")
        elif re.fullmatch(r"=?(eth|en[opsx])\w*", value) and value.lstrip("=") != _named(subject):
            fast = fabric in ("infiniband", "slingshot")
            where = f", and this site has {fabric}" if fast else ""
            message = f"{found.name}={value} is an interface name of one cluster{where}"
            yield RuleHit(line=found.line, message=message, severity="warning" if fast else None)


def _one_machine(subject: Subject) -> bool:
    """Whether all nodes of the site are names of one machine."""
    rendezvous = subject.context.site.rendezvous if subject.context.site else None
    return rendezvous is not None and rendezvous.host == "loopback"


def _named(subject: Subject) -> str:
    """Return the interfaces that the site's profile names."""
    network = subject.context.site.network if subject.context.site else None
    return ",".join(network.interfaces) if network else ""


@rule(
    "HT528",
    "warning",
    "fast transport disabled",
    why="NCCL_P2P_DISABLE, NCCL_SHM_DISABLE, NCCL_IB_DISABLE and NCCL_NET=Socket are for "
    "debugging; left in the script, they reduce the bandwidth, often by a factor of ten or more.",
    advice="remove it when the fault is found",
)
def fast_path_off(subject: Subject) -> Iterator[RuleHit]:
    names = ("NCCL_P2P_DISABLE", "NCCL_SHM_DISABLE", "NCCL_IB_DISABLE")
    for found in subject.script.exported_values(*names):
        harmless = found.name == "NCCL_IB_DISABLE" and subject.context.fabric in (
            "ethernet",
            "slingshot",
            "efa",
        )
        if found.value == "1" and not harmless and not _no_such_path(subject, found.name):
            yield RuleHit(line=found.line, message=f"{found.name}=1 is a debug setting")
    for found in subject.script.exported_values("NCCL_NET"):
        if found.value.lower() == "socket" and subject.context.fabric != "ethernet":
            if subject.script.asked.nodes != 1:
                yield RuleHit(line=found.line, message="NCCL_NET=Socket uses TCP only")


def _no_such_path(subject: Subject, name: str) -> bool:
    """Whether the job has nothing to lose: one node or EFA needs no verbs, GeForce has no P2P."""
    script = subject.script
    if name == "NCCL_IB_DISABLE":
        return (script.asked.batch and script.asked.nodes == 1) or _by_libfabric(script)
    return name == "NCCL_P2P_DISABLE" and _GEFORCE.search(script.text) is not None


def _by_libfabric(script: JobScript) -> bool:
    """Whether NCCL's plug-in for libfabric is the transport, so that none uses InfiniBand verbs."""
    providers = (one.value.lower() for one in script.settings("FI_PROVIDER"))
    plugins = (one.value.lower() for one in script.settings("NCCL_NET", "NCCL_NET_PLUGIN"))
    return (
        any(map(_FABRICS.search, providers))
        or any(name in _LIBFABRIC for name in plugins)
        or any("ofi-nccl" in one.value for one in script.assignments)
    )


@rule(
    "HT529",
    "info",
    "fixed NCCL_RAS_ADDR",
    why="Two jobs on one node cannot both use the same port for NCCL's RAS thread.",
    advice="leave it out, derive the port from the job id, or set NCCL_RAS_ENABLE=0",
)
def fixed_ras(subject: Subject) -> Iterator[RuleHit]:
    for found in subject.script.exported_values("NCCL_RAS_ADDR"):
        if not subject.script.asked.has("exclusive"):
            yield RuleHit(
                line=found.line, message=f"NCCL_RAS_ADDR={found.value} is the same for every job"
            )


@rule(
    "HT530",
    "warning",
    "COLLNET without a plug-in",
    why="A network plug-in implements in-network reduction: NCCL_NET_PLUGIN=none loads no plug-in.",
    advice="leave one of them out",
)
def collnet_without_plugin(subject: Subject) -> Iterator[RuleHit]:
    none = [f for f in subject.script.exported_values("NCCL_NET_PLUGIN") if f.value == "none"]
    for found in subject.script.exported_values("NCCL_COLLNET_ENABLE"):
        if found.value == "1" and none:
            message = f"NCCL_COLLNET_ENABLE=1, but line {none[0].line} loads no plug-in"
            yield RuleHit(line=found.line, message=message)


@rule(
    "HT534",
    "info",
    "NCCL_TOPO_FILE outside the container",
    why="The file is read inside the container: a path that is not mounted there is not "
    "found, and NCCL uses the topology that it detects.",
    advice="add the file to --container-mounts",
)
def topology_file(subject: Subject) -> Iterator[RuleHit]:
    boxes = [launch for launch in subject.script.launches if launch.option("container-image")]
    given = [box.option("container-mounts") for box in boxes]
    mounts = {(option and option.value) or "" for option in given}
    for found in subject.script.exported_values("NCCL_TOPO_FILE"):
        for mount in mounts:
            if "$" not in mount and not any(_within(found.value, root) for root in _inside(mount)):
                message = f"{found.value} is not among the container's mounts"
                yield RuleHit(line=found.line, message=message)
                break


def _inside(mounts: str) -> list[str]:
    """Return the paths inside the container: the second field of each mount, else the first."""
    fields = [mount.split(":") for mount in mounts.split(",")]
    return [field[1] if len(field) > 1 else field[0] for field in fields if field[0]]


def _within(path: str, root: str) -> bool:
    return path == root or path.startswith(f"{root.rstrip('/')}/")
