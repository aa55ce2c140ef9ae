"""The slurm.conf of a twin, as text."""

from __future__ import annotations

import re
import socket
import zlib
from collections.abc import Iterator

from hpc_train.base.errors import LabError
from hpc_train.base.units import LARGEST_MIB
from hpc_train.base.value import Value
from hpc_train.lab.run_program import ask
from hpc_train.lab.slurm_programs import plugin_line
from hpc_train.lab.twins.partitions import (
    Pool,
    default_queue,
    most,
    pools,
    queues,
    shape_of,
)
from hpc_train.sites.partition import Partition
from hpc_train.sites.profile import SiteProfile

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

_SLURMDBD = """\
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
DbdHost=localhost
DbdAddr={address}
DbdPort={dbd_port}
CommunicationParameters=EnableIPv6
SlurmUser=root
LogFile={folder}/log/slurmdbd.log
PidFile={folder}/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=root
StorageLoc={database}
"""

# More than any job requests; the profile does not state the number.
_PLENTY = 1_000_000_000


class TwinPaths(Value, frozen=True, kw_only=True):
    """Folder, ports and Slurm of a twin; `dbd_port` is 0 without accounting."""

    folder: str
    port: int
    dbd_port: int
    slurm_prefix: str = ""

    @property
    def database(self) -> str:
        """Return the name of its database; the port makes it unique."""
        return f"twin_{self.dbd_port}"


def cluster_name(profile: SiteProfile) -> str:
    """Return the cluster name of the twin: the site's, with the characters that Slurm allows."""
    return re.sub(r"[^a-z0-9_-]", "-", profile.name.lower())[:40]


def slurmdbd_conf(place: TwinPaths) -> str:
    """Return slurmdbd.conf."""
    text = _SLURMDBD.format(
        folder=place.folder, address=ADDRESS, dbd_port=place.dbd_port, database=place.database
    )
    return text + plugin_line(place.slurm_prefix)


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
    programs = plugin_line(place.slurm_prefix)
    return head + programs + "".join(f"{line}\n" for line in _site(profile))


def _site(profile: SiteProfile) -> Iterator[str]:
    if size := profile.limits.max_array_size:
        yield f"MaxArraySize={size}"
    if names := _requested(profile, "licenses"):
        yield f"Licenses={','.join(f'{name}:{_PLENTY}' for name in names)}"
    if names := tuple(dict.fromkeys(("gpu", *_requested(profile, "gres")))):
        yield f"GresTypes={','.join(names)}"
    found = pools(profile)
    for pool in found.values():
        yield _node(profile, pool)
    default = default_queue(profile)
    for name, entries in queues(profile).items():
        hosts = dict.fromkeys(found[shape_of(entry, profile)].hosts for entry in entries)
        words = " ".join((f"Nodes={','.join(hosts)}", *_limits(entries)))
        yield f"PartitionName={name} {words} Default={'YES' if name == default else 'NO'} State=UP"


def _node(profile: SiteProfile, pool: Pool) -> str:
    shape = pool.shape
    # Slurm counts cores, or threads if a job requests them; the plug-in enforces the limit.
    cores = shape.cpus + shape.reserved
    words = {
        "NodeName": pool.hosts,
        "Sockets": 1,
        "CoresPerSocket": cores,
        "ThreadsPerCore": shape.threads,
        "CPUs": cores * shape.threads,
        "CoreSpecCount": shape.reserved or None,
        "RealMemory": shape.mem,
        "TmpDisk": LARGEST_MIB,
        "Gres": ",".join(
            ":".join((name, *((kind,) if kind else ()), str(count)))
            for name, kind, count in _gres(profile, pool)
        ),
        "Features": ",".join(dict.fromkeys((*shape.features, *_requested(profile, "constraint")))),
        "State": "CLOUD",
    }
    return " ".join(f"{key}={value}" for key, value in words.items() if value)


def _gres(profile: SiteProfile, pool: Pool) -> Iterator[tuple[str, str | None, int]]:
    if pool.shape.gpus:
        yield "gpu", pool.shape.gpu_type, pool.shape.gpus
    for name in _requested(profile, "gres"):
        yield name, None, _PLENTY


def _requested(profile: SiteProfile, option: str) -> tuple[str, ...]:
    """Return the values that the site's file systems need in an option, without their counts."""
    words = (one.request.get(option, "") for one in profile.storage.values())
    found = (re.split(r"[:=*@]", word)[0] for text in words for word in re.split(r"[,&|]", text))
    return tuple(dict.fromkeys(name for name in found if name))


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
