"""Cluster: partitions, nodes, launchers and limits of a live Slurm."""

from hpc_train.base.slurm_options import Gres
from hpc_train.base.units import Duration, Memory
from hpc_train.base.value import Value

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
    max_memory: Memory | None
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
    enforced: tuple[str, ...] = ()
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
        for one in (gres for node in self.nodes for gres in node.gres):
            total[one.name, one.kind] = total.get((one.name, one.kind), 0) + one.count
        return tuple(Gres(name=n, kind=k, count=c) for (n, k), c in sorted(total.items()))
