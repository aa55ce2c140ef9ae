"""The configuration files of a lab, as text."""

from hpc_train.lab.settings import (
    CONTROLLER,
    CONTROLLER_PART,
    HOST_PART,
    NAME,
    Settings,
    address,
    nodes_of,
)

# A folder with a slurm.conf that starts like this was created by hpctrain and may be removed.
MARK = "# Made by `hpctrain lab up`, removed by `hpctrain lab down`."

_SLURM = """\
{mark}
ClusterName={name}
SlurmctldHost={controller}({address})
SlurmctldPort=16817
SlurmdPort=16818
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
MailProg=/bin/true
MpiDefault=none
# No cgroups: they belong to the machine, which may be a container.
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=5
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmdSpoolDir={folder}/spool/%n
# PMIx creates a folder with the name of the step here; in one /tmp those of all nodes collide.
TmpFS={folder}/tmp/%n
StateSaveLocation={folder}/state
SlurmctldLogFile={folder}/log/slurmctld.log
SlurmdLogFile={folder}/log/slurmd.%n.log
# The nodes may have more configured cores than the machine has.
SlurmdParameters=config_overrides
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=2,sched_min_interval=1
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
# Without it, a job that requests no memory would get all memory of a node.
DefMemPerCPU={mem_per_cpu}
# Without it, a job with too long a time limit or too many nodes would pend for ever.
EnforcePartLimits=ALL
# With 2, a late answer of a node that was set down returns it: the controller may handle an answer
# seconds after it came, and would start jobs on a dead node.
ReturnToService=1
SlurmctldTimeout=30
SlurmdTimeout=20
KillWait=5
MinJobAge=300
"""

_ACCOUNTING = """\
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost={address}
AccountingStoragePort=16819
# With munge, the "password" is the socket of the munged that slurmdbd trusts.
AccountingStoragePass={folder}/munge/socket
AccountingStorageEnforce=associations,limits,qos
PreemptType=preempt/qos
PreemptMode=REQUEUE
"""

_PARTITIONS = """\
PartitionName=gpu Nodes=ALL Default=YES MaxTime=60 DefaultTime=5 State=UP
PartitionName=long Nodes=ALL MaxTime=INFINITE DefaultTime=60 State=UP
"""

_SLURMDBD = """\
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
DbdHost={host}
DbdAddr={address}
DbdPort={port}
# Without it, slurmdbd resolves no address on a machine whose only interface is the loopback.
CommunicationParameters=EnableIPv6
SlurmUser=root
LogFile={folder}/log/slurmdbd.log
PidFile={folder}/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=root
StorageLoc=slurm_acct_db
"""


def slurm_conf(settings: Settings) -> str:
    """Return slurm.conf."""
    facts = {
        "mark": MARK,
        "name": NAME,
        "controller": CONTROLLER,
        "address": address(CONTROLLER_PART),
        "folder": settings.folder,
        "mem_per_cpu": max(1, settings.mem // settings.cpus),
    }
    accounting = _ACCOUNTING.format(**facts) if settings.accounting else ""
    return _SLURM.format(**facts) + accounting + _gres_types(settings) + _nodes(settings)


def _gres_types(settings: Settings) -> str:
    if not settings.gpus:
        return ""
    tracked = "AccountingStorageTRES=gres/gpu\n" if settings.accounting else ""
    return f"GresTypes=gpu\n{tracked}"


def _nodes(settings: Settings) -> str:
    gres = f" Gres=gpu:{settings.gpu_type}:{settings.gpus}" if settings.gpus else ""
    size = f"CPUs={settings.cpus} RealMemory={int(settings.mem)}{gres} State=UNKNOWN"
    lines = [f"NodeName={n.name} NodeAddr={n.eth0} {size}\n" for n in nodes_of(settings)]
    return "".join(lines) + _PARTITIONS


def gres_conf(settings: Settings) -> str:
    """Return gres.conf: the character devices that represent GPUs."""
    devices = [f"{settings.folder}/dev/gpu{index}" for index in range(settings.gpus)]
    names = ",".join(node.name for node in nodes_of(settings))
    return "".join(
        f"NodeName={names} Name=gpu Type={settings.gpu_type} File={device}\n" for device in devices
    )


def slurmdbd_conf(folder: str, host: str, address: str, port: int) -> str:
    """Return slurmdbd.conf of a lab or twin."""
    return _SLURMDBD.format(folder=folder, host=host, address=address, port=port)


def hosts(settings: Settings, login: str) -> str:
    """Return the /etc/hosts of the nodes and the controller; `lab1i` is lab1 on ib0."""
    controller = f"{address(CONTROLLER_PART)} {CONTROLLER}"
    lines = ["127.0.0.1 localhost", controller, f"{address(HOST_PART)} {login}"]
    for node in nodes_of(settings):
        lines += [f"{node.eth0} {node.name}", f"{node.ib0} {node.name}i"]
    return "\n".join(lines) + "\n"
