"""A profile's partitions -> the partitions and nodes in Slurm of its twin."""

import os
import pwd
import re
import socket
import zlib
from collections.abc import Iterator, Sequence

from hpc_train.base.errors import LabError
from hpc_train.base.values import LARGEST_MIB, Value
from hpc_train.lab.daemons import ask
from hpc_train.sites.partition import ANY, Partition, Qos
from hpc_train.sites.profile import SiteProfile

# Partition of jobs that name none; no partition of a site has this name.
UNNAMED = "unnamed"
# Name of `*` if the profile names no other partition: sample jobs name this one.
ANY_NAME = "gpu"

# A node of unknown size accepts any request.
UNKNOWN_CPUS, UNKNOWN_GPUS = 256, 64
# Of all partitions of unknown size together; with more, slurmctld takes seconds for each job.
_UNKNOWN_NODES = 2000
_FEATURE = re.compile(r"[A-Za-z_][\w.-]*")


class NodeSize(Value, frozen=True, kw_only=True):
    """A kind of node; `gpus` is None if Slurm does not count them."""

    cpus: int
    reserved: int
    threads: int
    mem: int
    gpus: int | None
    gpu_type: str | None
    features: tuple[str, ...]


class Pool(Value, frozen=True, kw_only=True):
    """Nodes of one shape, NAME1 to NAMEn; partitions with the same shape share them."""

    name: str
    shape: NodeSize
    count: int

    @property
    def hosts(self) -> str:
        """Return the host list in Slurm's notation."""
        return f"{self.name}[1-{self.count}]"


def queue_name(partition: Partition) -> str:
    """Return Slurm's name for a partition of the profile."""
    if partition.select is not None:
        return partition.select.partition or UNNAMED
    return ANY_NAME if partition.name == ANY else partition.name


def stands_for_others(partition: Partition) -> bool:
    """Return whether an entry of a profile names no partition of Slurm."""
    return partition.name == ANY and partition.select is None


def twin_partitions(profile: SiteProfile) -> tuple[Partition, ...]:
    """Return the partitions of the profile that the twin has: those that have a name, if any."""
    named = tuple(one for one in profile.partitions if not stands_for_others(one))
    return named or profile.partitions or (Partition(name=ANY, default=True),)


def queues(profile: SiteProfile) -> dict[str, tuple[Partition, ...]]:
    """Return Slurm's partitions, each with the partitions of the profile that use it."""
    found: dict[str, tuple[Partition, ...]] = {}
    for partition in twin_partitions(profile):
        name = queue_name(partition)
        found[name] = (*found.get(name, ()), partition)
    return found


def default_queue(profile: SiteProfile) -> str | None:
    """Return the default partition, if there is one."""
    found = queues(profile)
    if UNNAMED in found:
        return UNNAMED
    defaults = (name for name, users in found.items() if any(e.default for e in users))
    return next(defaults, None)


def pools(profile: SiteProfile) -> dict[NodeSize, Pool]:
    """Return the nodes, by their shape."""
    sizes: dict[NodeSize, list[Partition]] = {}
    for shared in queues(profile).values():
        for entry in shared:
            sizes.setdefault(shape_of(entry, profile), []).append(entry)
    unknown = sum(None in map(known_nodes, users) for users in sizes.values())
    found = {}
    for number, (shape, users) in enumerate(sizes.items(), start=1):
        name = _node_name(users[0].name, number)
        counts = [known_nodes(entry) or _named_nodes(entry) for entry in users]
        if None in map(known_nodes, users):
            counts.append(_UNKNOWN_NODES // unknown)
        found[shape] = Pool(name=name, shape=shape, count=max(counts))
    return found


def shape_of(partition: Partition, profile: SiteProfile) -> NodeSize:
    """Return the shape of the nodes of a partition."""
    gpus = partition.gpus_per_node
    counted = profile.gpu_request != "none"
    share = (partition.cpus_per_gpu or 0) * (gpus or 0)
    return NodeSize(
        cpus=partition.cpus_per_node or max(share, UNKNOWN_CPUS),
        reserved=partition.reserved_cpus or 0,
        threads=partition.threads_per_core or 1,
        mem=int(partition.mem_per_node or LARGEST_MIB),
        gpus=(UNKNOWN_GPUS if gpus is None else gpus) if counted else None,
        gpu_type=partition.gpu_type,
        features=features(partition),
    )


def features(partition: Partition) -> tuple[str, ...]:
    """Return the features in a partition's constraint."""
    constraint = partition.select.constraint if partition.select else None
    return tuple(dict.fromkeys(_FEATURE.findall(constraint or "")))


def most(partition: Partition, name: str) -> int | None:
    """Return the largest `max_NAME` of a partition for any job; None means no limit."""
    own: int | None = getattr(partition, f"max_{name}")
    special = [bound.max_time for bound in partition.bounds] if name == "time" else []
    return None if own is None else max([own, *special])


def known_nodes(partition: Partition) -> int | None:
    """Return the number of nodes, or of the largest job; None if the profile states neither."""
    return partition.nodes or most(partition, "nodes")


def _named_nodes(partition: Partition) -> int:
    """Return the largest number of nodes that a limit mentions."""
    said = (int(n) for bound in partition.bounds for n in re.findall(r"\d+", bound.nodes))
    return max(1, partition.min_nodes or 1, *said)


def _node_name(name: str, number: int) -> str:
    """Return a unique prefix, with the characters that a host name allows."""
    return f"{re.sub(r'[^A-Za-z0-9]+', '-', name).strip('-') or 'node'}-{number}n"


# The account that each job is charged to.
ACCOUNT = "any"
# Slurm defines this one itself.
NORMAL = "normal"
_USER = re.compile(r"[A-Za-z0-9_][\w.@-]*", re.ASCII)
_MOST_USERS = 1000


def has_accounting(profile: SiteProfile) -> bool:
    """Whether the profile needs accounting: it has a quality of service."""
    return bool(_names(profile))


def account_settings(profile: SiteProfile, users: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Return the commands of sacctmgr."""
    names = ",".join(dict.fromkeys((NORMAL, *_names(profile))))
    return (
        ("add", "account", ACCOUNT),
        *_qualities(profile),
        # Set for the cluster, so that it also applies to jobs without an account.
        ("modify", "cluster", cluster_name(profile), "set", f"qos={names}"),
        ("add", "user", ",".join(users), f"account={ACCOUNT}"),
    )


def users_of_machine() -> tuple[str, ...]:
    """Return root, the user who called sudo, and the users that the machine lists."""
    listed = [entry.pw_name for entry in pwd.getpwall()][:_MOST_USERS]
    names = sorted({os.environ.get("SUDO_USER", "root"), *listed} - {"root"})
    return ("root", *(name for name in names if _USER.fullmatch(name)))


def _names(profile: SiteProfile) -> tuple[str, ...]:
    listed = [qos.name for qos in profile.qos if qos.name != ANY]
    selected = [one.select.qos for one in profile.partitions if one.select and one.select.qos]
    return tuple(dict.fromkeys((*listed, *selected)))


def _qualities(profile: SiteProfile) -> tuple[tuple[str, ...], ...]:
    """Return one command for all QOS with the same limits, because each command is slow."""
    limits = {qos.name: _limits_of_qos(qos) for qos in profile.qos}
    groups: dict[tuple[str, ...], list[str]] = {}
    for name in _names(profile):
        if name != NORMAL:
            groups.setdefault(limits.get(name, ()), []).append(name)
    normal = limits.get(NORMAL, ())
    return (
        *(("add", "qos", ",".join(names), *words) for words, names in groups.items()),
        *((("modify", "qos", NORMAL, "set", *normal),) if normal else ()),
    )


def _limits_of_qos(qos: Qos) -> tuple[str, ...]:
    tres = {"node": qos.max_nodes, "gres/gpu": qos.max_gpus}
    each = ",".join(f"{name}={limit}" for name, limit in tres.items() if limit is not None)
    wall = f"MaxWall={qos.max_time}" if qos.max_time else ""
    words = (wall, f"MaxTRESPerJob={each}" if each else "")
    found = tuple(word for word in words if word)
    # Without the flag, a job beyond the limit would pend for ever.
    return (*found, "Flags=DenyOnLimit") if found else ()


# A folder with a slurm.conf that starts like this was created by hpctrain and may be removed.
MARK = "# Made by `hpctrain lab twin`, removed by `hpctrain lab twin --down`."

_HEAD = """\
{mark}
ClusterName={cluster}
SlurmctldHost=localhost({address})
SlurmctldPort={port}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
MailProg=/bin/true
MpiDefault=none
# A twin has more nodes than a small machine can search in the default of 10 s.
MessageTimeout=60
# With IPv4 alone, Slurm resolves no address on a machine whose only interface is the loopback.
CommunicationParameters=EnableIPv6
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SlurmctldPidFile={folder}/slurmctld.pid
StateSaveLocation={folder}/state
SlurmctldLogFile={folder}/log/slurmctld.log
SchedulerType=sched/backfill
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
# Without it, a job with too long a time limit or too many nodes would pend for ever.
EnforcePartLimits=ALL
# All nodes are powered-down cloud nodes, so that none needs a slurmd.
SuspendProgram=/bin/true
ResumeProgram=/bin/true
SuspendTime=60
JobSubmitPlugins=lua
"""

_ACCOUNTING = """\
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost={address}
AccountingStoragePort={dbd_port}
# With munge, the "password" is the socket of the munged that slurmdbd trusts.
AccountingStoragePass={folder}/munge/socket
AccountingStorageTRES=gres/gpu
AccountingStorageEnforce=limits,qos
"""


class TwinPaths(Value, frozen=True, kw_only=True):
    """Folder and ports of a twin; `dbd_port` is 0 without accounting."""

    folder: str
    port: int
    dbd_port: int


def cluster_name(profile: SiteProfile) -> str:
    """Return the cluster name of the twin: the site's, with the characters that Slurm allows."""
    return re.sub(r"[^a-z0-9_-]", "-", profile.name.lower())[:40]


def slurm_conf(profile: SiteProfile, place: TwinPaths) -> str:
    """Return slurm.conf."""
    facts = {
        "mark": MARK,
        "cluster": cluster_name(profile),
        "address": ADDRESS,
        "port": place.port,
        "folder": place.folder,
        "dbd_port": place.dbd_port,
    }
    head = _HEAD.format(**facts) + (_ACCOUNTING.format(**facts) if place.dbd_port else "")
    return head + "".join(f"{line}\n" for line in _site(profile))


def _site(profile: SiteProfile) -> Iterator[str]:
    if size := profile.limits.max_array_size:
        yield f"MaxArraySize={size}"
    yield "GresTypes=gpu"
    found = pools(profile)
    for pool in found.values():
        yield _node(pool)
    default = default_queue(profile)
    for name, entries in queues(profile).items():
        hosts = dict.fromkeys(found[shape_of(entry, profile)].hosts for entry in entries)
        words = " ".join((f"Nodes={','.join(hosts)}", *_limits(entries)))
        yield f"PartitionName={name} {words} Default={'YES' if name == default else 'NO'} State=UP"


def _node(pool: Pool) -> str:
    shape = pool.shape
    # Slurm counts cores, or threads if a job requests them; the plug-in enforces the limit.
    cores = shape.cpus + shape.reserved
    gpus = ":".join(("gpu", *((shape.gpu_type,) if shape.gpu_type else ()), str(shape.gpus)))
    words = {
        "NodeName": pool.hosts,
        "Sockets": 1,
        "CoresPerSocket": cores,
        "ThreadsPerCore": shape.threads,
        "CPUs": cores * shape.threads,
        "CoreSpecCount": shape.reserved or None,
        "RealMemory": shape.mem,
        "TmpDisk": LARGEST_MIB,
        "Gres": gpus if shape.gpus else "",
        "Features": ",".join(shape.features),
        "State": "CLOUD",
    }
    return " ".join(f"{key}={value}" for key, value in words.items() if value)


def _limits(entries: tuple[Partition, ...]) -> Iterator[str]:
    """Return the limits of a Slurm partition that several partitions of the profile share."""
    times = [most(entry, "time") for entry in entries]
    counts = [most(entry, "nodes") for entry in entries]
    known = [time for time in times if time is not None]
    if len(known) == len(times):
        yield f"MaxTime={-(-max(known) // 60)}"
    sizes = [count for count in counts if count is not None]
    if len(sizes) == len(counts):
        yield f"MaxNodes={max(sizes)}"
    if least := min(entry.min_nodes or 1 for entry in entries):
        yield f"MinNodes={least}"
    if len(entries) == 1 and (short := entries[0].default_time):
        yield f"DefaultTime={-(-short // 60)}"
    if all(entry.shared is False for entry in entries):
        yield "OverSubscribe=EXCLUSIVE"


# The address of all twins, and free ports for each.
#
# It is a loopback address with a route without delayed acknowledgements: Slurm's programs write a
# message in two parts, and the kernel delays the second until the first is acknowledged, which
# takes 40 ms. With immediate acknowledgement a twin with accounting starts in two seconds instead
# of ten.

ADDRESS = "127.77.0.1"
_ROUTE = ("local", ADDRESS, "dev", "lo", "table", "local")
# Below the range that Linux assigns to outgoing connections.
_FIRST, _NUMBER = 20000, 10000


def add_route() -> None:
    """Add the route; if this fails, the address works, but is slower."""
    ask(("ip", "route", "replace", *_ROUTE, "src", ADDRESS, "quickack", "1"))


def remove_route() -> None:
    """Remove the route."""
    ask(("ip", "route", "del", *_ROUTE))


def free_ports(name: str) -> Iterator[int]:
    """Yield free ports, usually the same ones for the same name.

    Raises:
        LabError: there is no further free port.
    """
    start = zlib.crc32(name.encode()) % _NUMBER
    for offset in range(_NUMBER):
        port = _FIRST + (start + offset) % _NUMBER
        if _is_free(port):
            yield port
    raise LabError(f"all ports from {_FIRST} to {_FIRST + _NUMBER - 1} are in use")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True
