"""A live Slurm: its partitions, nodes and limits, and what it says of a script."""

import getpass
import re
from collections.abc import Iterator, Mapping
from typing import Literal

from hpc_train.base.errors import ProbeError
from hpc_train.base.processes import Answer, Ask, ask, whole
from hpc_train.base.slurm_options import Gres, Refusal, gres
from hpc_train.base.values import LARGEST_MIB, Duration, Memory, Value

Fields = Mapping[str, str]

# A value may contain blanks (OS=Linux 6.1 #1 SMP) and other pairs (CfgTRES=cpu=8,mem=4000M).
_KEY = re.compile(r"(?:^|\s)([A-Za-z][\w/:]*)=")
_SETTING = re.compile(r"^([A-Za-z]\w*)[ \t]*=(.*)$", re.MULTILINE)
_NOTHING = frozenset({"", "(null)", "N/A", "n/a", "NONE", "None"})


def records(text: str, first: str) -> Iterator[Fields]:
    """Yield the lines of `scontrol show … --oneliner` that start with the key `first`."""
    for line in text.splitlines():
        if line.startswith(f"{first}="):
            found = [*_KEY.finditer(line)]
            ends = [match.start() for match in found[1:]] + [len(line)]
            pairs = zip(found, ends, strict=True)
            yield {match[1]: line[match.end() : end].strip() for match, end in pairs}


def settings(text: str) -> Fields:
    """Return the lines `Key = Value` of `scontrol show config`."""
    return {name: value.strip() for name, value in _SETTING.findall(text)}


def table(text: str) -> tuple[Fields, ...]:
    """Return the rows of `sacctmgr --parsable2`; its first line names the columns."""
    lines = [line.split("|") for line in text.splitlines() if "|" in line]
    if not lines:
        return ()
    heads, *rows = lines
    return tuple(dict(zip(heads, row, strict=False)) for row in rows if len(row) >= len(heads))


def word(record: Fields, key: str) -> str:
    """Return a value, empty for Slurm's notations of no value."""
    value = record.get(key, "").strip()
    return "" if value in _NOTHING else value


def words(record: Fields, key: str) -> tuple[str, ...]:
    """Return a list with commas; empty for ALL."""
    value = word(record, key)
    return () if value == "ALL" else tuple(part for part in value.split(",") if part)


def count(record: Fields, key: str) -> int | None:
    """Return a number; None for UNLIMITED and for other texts."""
    return whole(word(record, key))


def duration(record: Fields, key: str) -> Duration | None:
    """Return a time; None for UNLIMITED and for times beyond the supported range."""
    try:
        return Duration.parse(word(record, key))
    except ValueError:
        return None


def memory(record: Fields, key: str) -> Memory | None:
    """Return an amount of memory that Slurm gives in MiB."""
    size = count(record, key)
    return Memory(size) if size and size <= LARGEST_MIB else None


def tres(value: str) -> dict[str, int]:
    """Return `node=4,gres/gpu=16` as numbers; other values are left out."""
    pairs = (part.partition("=") for part in value.split(","))
    numbers = {name: whole(number) for name, _, number in pairs}
    return {name: number for name, number in numbers.items() if number is not None}


# Modes of preemption that end the job.
_ENDED = {"REQUEUE", "CANCEL"}


class LiveNode(Value, frozen=True, kw_only=True):
    """A node; cores and threads as Slurm counts them, `cpus` without reserved ones."""

    name: str
    arch: str
    cpus: int
    all_cpus: int
    threads: int
    memory: Memory | None
    gres: tuple[Gres, ...]
    features: tuple[str, ...]
    partitions: tuple[str, ...]
    state: str

    @property
    def gpus(self) -> int:
        """Return the number of GPUs in Slurm, of all kinds."""
        return sum(one.count for one in self.gres if one.name == "gpu")

    @property
    def gpu_kinds(self) -> tuple[str, ...]:
        """Return Slurm's types of its GPUs."""
        return tuple(dict.fromkeys(g.kind for g in self.gres if g.name == "gpu" and g.kind))


class LivePartition(Value, frozen=True, kw_only=True):
    """A partition; None means no limit."""

    name: str
    state: str
    default: bool
    nodes: int
    min_nodes: int | None
    max_nodes: int | None
    max_time: Duration | None
    default_time: Duration | None
    shared: bool | None
    qos: str
    allowed_qos: tuple[str, ...]
    allowed_accounts: tuple[str, ...]
    preempt_mode: str
    grace: Duration | None

    @property
    def largest(self) -> int | None:
        """Return the nodes of the largest job; MaxNodes=0 closes a partition and is not a limit."""
        return min(filter(None, (self.max_nodes, self.nodes)), default=None)


class LiveQos(Value, frozen=True, kw_only=True):
    """A quality of service; None means no limit."""

    name: str
    max_time: Duration | None
    max_nodes: int | None
    max_gpus: int | None
    max_jobs: int | None
    grace: Duration | None = None


class Association(Value, frozen=True, kw_only=True):
    """An account of the user, with its QOS and partitions."""

    account: str
    partition: str
    qos: tuple[str, ...]
    default_qos: str
    max_submit_jobs: int | None


class Mpi(Value, frozen=True, kw_only=True):
    """The plug-ins that `srun --mpi=` lists, those that it cannot load, and the default."""

    plugins: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()
    default: str = ""


class Bounds(Value, frozen=True, kw_only=True):
    """Limits of the whole cluster."""

    max_array_size: int | None = None
    requeue: bool | None = None
    select: str = ""
    kill_wait_s: int | None = None


class Cluster(Value, frozen=True, kw_only=True):
    """The answers of Slurm; `unread` lists the errors of commands that could not be read."""

    name: str
    version: str
    partitions: tuple[LivePartition, ...]
    nodes: tuple[LiveNode, ...]
    mpi: Mpi = Mpi()
    qos: tuple[LiveQos, ...] = ()
    associations: tuple[Association, ...] = ()
    limits: Bounds = Bounds()
    accounting: bool = False
    unread: tuple[str, ...] = ()

    @property
    def features(self) -> tuple[str, ...]:
        """Return the features of all nodes."""
        return tuple(sorted({name for node in self.nodes for name in node.features}))

    @property
    def preemption(self) -> str:
        """Return how jobs are preempted, and the time that a job with `lifecycle` has to save.

        Empty where none is ended: the others are suspended, or go on.
        """
        modes = {one.name: one.preempt_mode for one in self.partitions}
        ended = [f"{name} {mode}" for name, mode in modes.items() if _ENDED & {*mode.split(",")}]
        if not ended:
            return ""
        graces = {f"partition {one.name}": one.grace for one in self.partitions}
        graces |= {f"QOS {one.name}": one.grace for one in self.qos}
        times = [f"{name} {int(grace)} s" for name, grace in graces.items() if grace]
        wait = "unknown" if self.limits.kill_wait_s is None else f"{self.limits.kill_wait_s} s"
        return (
            f"{', '.join(ended)}; a job with lifecycle has to save within GraceTime "
            f"({', '.join(times) or 'none'}), else KillWait ({wait})"
        )

    @property
    def gres(self) -> tuple[Gres, ...]:
        """Return each kind of generic resource once, with the sum over the nodes."""
        total: dict[tuple[str, str], int] = {}
        for one in (kind for node in self.nodes for kind in node.gres):
            total[one.name, one.kind] = total.get((one.name, one.kind), 0) + one.count
        return tuple(Gres(name=n, kind=k, count=c) for (n, k), c in sorted(total.items()))


class SlurmFacts(Value, frozen=True, kw_only=True):
    """What a live Slurm offers; empty where it did not answer."""

    partitions: tuple[LivePartition, ...] = ()
    nodes: tuple[LiveNode, ...] = ()
    associations: tuple[Association, ...] = ()
    qos: tuple[LiveQos, ...] = ()


class SlurmAnswer(Value, frozen=True, kw_only=True):
    """The answer of `sbatch --test-only`; `words` are Slurm's own.

    `subject` is the script that was judged, `warnings` are errors that sbatch prints although it
    accepts the script. `line` and `stray` are the line and the word that sbatch itself names, or 0
    and an empty text.
    """

    outcome: Literal["accepted", "refused", "unanswered"]
    words: str
    subject: str = "the script"
    warnings: tuple[str, ...] = ()
    refusal: Refusal | None = None
    line: int = 0
    stray: str = ""
    facts: SlurmFacts = SlurmFacts()


# Lines of `srun --mpi=list`.
_NAME = re.compile(r"^(?:srun: )?\s*([a-z][a-z0-9_]*)\s*$")
_VERSIONS = re.compile(r"versions available: (.*)")


def partitions(text: str) -> tuple[LivePartition, ...]:
    """Read `scontrol show partition --oneliner`; the order is Slurm's."""
    return tuple(_partition(record) for record in records(text, "PartitionName"))


def _partition(record: Fields) -> LivePartition:
    over_subscribe = word(record, "OverSubscribe") or word(record, "Shared")
    return LivePartition(
        name=word(record, "PartitionName"),
        state=word(record, "State"),
        default=word(record, "Default") == "YES",
        nodes=count(record, "TotalNodes") or 0,
        min_nodes=count(record, "MinNodes"),
        max_nodes=count(record, "MaxNodes"),
        max_time=duration(record, "MaxTime"),
        default_time=duration(record, "DefaultTime"),
        # With NO they share nodes, but no cores.
        shared=over_subscribe != "EXCLUSIVE" if over_subscribe else None,
        qos=word(record, "QoS"),
        allowed_qos=words(record, "AllowQos"),
        allowed_accounts=words(record, "AllowAccounts"),
        preempt_mode=word(record, "PreemptMode"),
        grace=_grace(record),
    )


def _grace(record: Fields) -> Duration | None:
    seconds = count(record, "GraceTime")
    return Duration(seconds) if seconds else duration(record, "GraceTime")


def nodes(text: str) -> tuple[LiveNode, ...]:
    """Read `scontrol show node --oneliner`; the order is Slurm's."""
    return tuple(_node(record) for record in records(text, "NodeName"))


def _node(record: Fields) -> LiveNode:
    total = count(record, "CPUTot") or 0
    return LiveNode(
        name=word(record, "NodeName"),
        arch=word(record, "Arch"),
        # 22.05 and later print the number without CoreSpecCount.
        cpus=count(record, "CPUEfctv") or total,
        all_cpus=total,
        threads=count(record, "ThreadsPerCore") or 1,
        memory=memory(record, "RealMemory"),
        gres=gres(word(record, "Gres")),
        features=words(record, "AvailableFeatures"),
        partitions=words(record, "Partitions"),
        state=word(record, "State"),
    )


def qualities(text: str) -> tuple[LiveQos, ...]:
    """Read `sacctmgr show qos format=Name,MaxWall,MaxTRES,MaxJobsPU,GraceTime`."""
    found = []
    for record in table(text):
        most = tres(word(record, "MaxTRES"))
        found.append(
            LiveQos(
                name=word(record, "Name"),
                max_time=duration(record, "MaxWall"),
                max_nodes=most.get("node"),
                max_gpus=most.get("gres/gpu"),
                max_jobs=count(record, "MaxJobsPU"),
                grace=_grace(record),
            )
        )
    return tuple(one for one in found if one.name)


def associations(text: str, cluster: str) -> tuple[Association, ...]:
    """Read `sacctmgr show assoc` of one user.

    The format is `Cluster,Account,Partition,QOS,DefaultQOS,MaxSubmit`.
    """
    return tuple(
        Association(
            account=word(record, "Account"),
            partition=word(record, "Partition"),
            qos=words(record, "QOS"),
            default_qos=word(record, "Def QOS"),
            max_submit_jobs=count(record, "MaxSubmit"),
        )
        for record in table(text)
        if word(record, "Account") and word(record, "Cluster").lower() == cluster.lower()
    )


def mpi_plugins(text: str) -> tuple[str, ...]:
    """Read `srun --mpi=list`; names with a version come last.

    Older Slurm prints `srun: pmix` on stderr.
    """
    plain, versions = [], []
    for line in text.splitlines():
        if match := _VERSIONS.search(line):
            versions += [name for name in re.split(r"[,\s]+", match[1]) if name]
        elif match := _NAME.match(line):
            plain.append(match[1])
    return tuple(dict.fromkeys((*plain, *versions)))


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
    broken = []
    for name in (one for one in found_mpi if one in _TRIED):
        # srun says before a job starts that the library of a plug-in is missing.
        answer = question("srun", f"--mpi={name}", "--test-only", "--nodes=1", "true")
        broken += [name] if "mpi" in answer.problem.lower() else []
    version, requeue = _VERSION.match(word(config, "SLURM_VERSION")), word(config, "JobRequeue")
    return Cluster(
        name=word(config, "ClusterName"),
        version=version[0] if version else "",
        partitions=queues,
        nodes=found_nodes,
        mpi=Mpi(
            plugins=found_mpi,
            broken=tuple(broken),
            default=word(config, "MpiDefault"),
        ),
        qos=qos,
        associations=mine,
        limits=Bounds(
            max_array_size=count(config, "MaxArraySize"),
            requeue=None if not requeue else requeue == "1",
            select=word(config, "SelectType"),
            # `30 sec`.
            kill_wait_s=whole(word(config, "KillWait").partition(" ")[0]),
        ),
        accounting=accounting,
        unread=tuple(unread),
    )


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
