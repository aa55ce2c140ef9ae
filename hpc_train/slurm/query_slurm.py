"""A live Slurm -> Cluster."""

from __future__ import annotations

import getpass
import re

from hpc_train.base.errors import ProbeError
from hpc_train.base.processes import Answer, Ask, ask, whole
from hpc_train.sites.detection import Fields, count, settings, word, words
from hpc_train.slurm.live_cluster import Association, Bounds, Cluster, LiveQos, Mpi
from hpc_train.slurm.parse_slurm_output import (
    associations,
    mpi_plugins,
    nodes,
    partitions,
    qualities,
)
from hpc_train.slurm.switch_topology import SwitchTopology

_QOS = "format=Name,MaxWall,MaxTRES,MaxJobsPU,GraceTime"
_ASSOCIATIONS = "format=Cluster,Account,Partition,QOS,DefaultQOS,MaxSubmit"
_TRIED = ("pmix", "cray_shasta", "pmi2")
_VERSION = re.compile(r"\d+(\.\d+)*")


def read_cluster(question: Ask = ask) -> Cluster:
    """Query Slurm's commands; values that are not essential may be missing.

    Raises:
        ProbeError: configuration or partitions cannot be read.
    """
    config = settings(_must(question, "scontrol", "show", "config"))
    if not word(config, "ClusterName"):
        raise ProbeError(
            "`scontrol show config` has no ClusterName: unknown format",
            "scontrol show config | head",
        )
    queues = partitions(_must(question, "scontrol", "show", "partition", "--oneliner"))
    hosts = question("scontrol", "show", "node", "--oneliner", timeout_s=60.0)
    plugins = question("srun", "--mpi=list")
    accounting = word(config, "AccountingStorageType") not in ("", "accounting_storage/none")
    found_nodes, found_mpi = nodes(hosts.text), mpi_plugins(plugins.text)
    unread = [
        *_unread("scontrol show node", hosts, bool(found_nodes)),
        *_unread("srun --mpi=list", plugins, bool(found_mpi)),
        *([] if queues else ["could not be read: partitions: Slurm shows none"]),
    ]
    qos, mine = _accounts(question, config, unread) if accounting else ((), ())
    return Cluster(
        name=word(config, "ClusterName"),
        version=_version(word(config, "SLURM_VERSION")),
        partitions=queues,
        nodes=found_nodes,
        mpi=Mpi(
            plugins=found_mpi,
            broken=tuple(name for name in found_mpi if _is_broken(question, name)),
            default=word(config, "MpiDefault"),
        ),
        qos=qos,
        associations=mine,
        limits=_bounds(config),
        accounting=accounting,
        unread=tuple(unread),
    )


def read_switches(question: Ask = ask) -> SwitchTopology | None:
    """Return how Slurm groups its nodes; None if it does not."""
    return SwitchTopology.parse(question("scontrol", "show", "topology").text)


def _must(question: Ask, *argv: str) -> str:
    answer = question(*argv)
    if answer.problem:
        raise ProbeError(
            f"`{' '.join(argv)}`: {answer.problem}",
            "run it on a login node where Slurm's commands work; set SLURM_CONF if needed",
        )
    return answer.text


def _unread(what: str, answer: Answer, understood: bool) -> list[str]:
    if answer.problem:
        return [f"could not be read: {what}: {answer.problem}"]
    return [] if understood else [f"could not be read: {what}: an unknown format"]


def _is_broken(question: Ask, plugin: str) -> bool:
    """Whether a listed plug-in lacks its library; srun reports this before a job starts."""
    if plugin not in _TRIED:
        return False
    answer = question("srun", f"--mpi={plugin}", "--test-only", "--nodes=1", "true")
    return "mpi" in answer.problem.lower()


def _accounts(
    question: Ask, config: Fields, unread: list[str]
) -> tuple[tuple[LiveQos, ...], tuple[Association, ...]]:
    """Return the accounts; sacctmgr may be missing or not permitted."""
    user = f"user={getpass.getuser()}"
    qos = question("sacctmgr", "-P", "show", "qos", _QOS)
    mine = question("sacctmgr", "-P", "show", "assoc", user, _ASSOCIATIONS)
    found = qualities(qos.text)
    unread += _unread("sacctmgr show qos", qos, bool(found))
    unread += _unread("sacctmgr show assoc", mine, "|" in mine.text)
    return found, associations(mine.text, word(config, "ClusterName"))


def _bounds(config: Fields) -> Bounds:
    requeue = word(config, "JobRequeue")
    return Bounds(
        max_array_size=count(config, "MaxArraySize"),
        requeue=None if not requeue else requeue == "1",
        select=word(config, "SelectType"),
        enforced=words(config, "AccountingStorageEnforce"),
        # `30 sec`.
        kill_wait_s=whole(word(config, "KillWait").partition(" ")[0]),
    )


def _version(text: str) -> str:
    match = _VERSION.match(text)
    return match[0] if match else ""
