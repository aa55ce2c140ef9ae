"""Profile and partition -> the machine that forecasts are about, each value with its source."""

import math

from hpc_train.base.errors import PlanError
from hpc_train.base.values import Value
from hpc_train.sites.gpu_specs import gpu_spec
from hpc_train.sites.partition import Partition
from hpc_train.sites.profile import SourcedSite

# No machine has more.
MOST_RANKS = 1_048_576


class MachineSize(Value, frozen=True, kw_only=True):
    """One kind of node; None is unknown, 0 GPUs is a node without, on which ranks are counted.

    Memory of a GPU in GiB, from its smallest variant to its largest; `peak_tflops` by precision;
    bandwidths in GB/s in one direction: `gpu_link` of one GPU to its neighbours, `node_link` of all
    adapters of a node together. `sources` are the name of each value and where it comes from.
    """

    site: str
    partition: str
    gpus_per_node: int
    ranks_per_node: int = 1
    gpu: str = ""
    least_gib: float | None = None
    most_gib: float | None = None
    peak_tflops: dict[str, float] = {}
    gpu_link: float | None = None
    node_link: float | None = None
    max_nodes: int | None = None
    max_gpus: int | None = None
    sources: dict[str, str] = {}

    def nodes(self, ranks: int) -> int:
        """Return the nodes of so many ranks; without GPUs, a node may have more than a job's."""
        if self.gpus_per_node:
            return math.ceil(ranks / self.gpus_per_node)
        return min(math.ceil(ranks / self.ranks_per_node), self.max_nodes or MOST_RANKS)

    @property
    def most_ranks(self) -> int:
        """The most GPUs of one job, or ranks on processors."""
        if not self.gpus_per_node:
            return MOST_RANKS
        by_nodes = (self.max_nodes or MOST_RANKS) * self.gpus_per_node
        return min(by_nodes, self.max_gpus or MOST_RANKS, MOST_RANKS)


_BITS = 8.0


def machine_of(site: SourcedSite, partition: str | None, *, gpus: bool = True) -> MachineSize:
    """Return the nodes of a partition: by name, else the default, else the first with GPUs.

    Without `gpus` theirs do not count: a job that requests none has ranks on processors.

    Raises:
        PlanError: the site has no partition of this name.
    """
    index, found = _partition(site, partition)
    each = found.gpus_per_node or 0 if gpus else 0
    gpu = (found.gpu_model or found.gpu_type or "") if gpus else ""
    spec = gpu_spec(gpu) if each else None
    peaks = found.gpu_peak_tflops if gpus else {}
    link = None
    if found.nics_per_node is not None and found.nic_gbps is not None:
        link = found.nics_per_node * found.nic_gbps / _BITS
    known = {"gpus_per_node": each, "gpu_peak_tflops": peaks, "nics_per_node": link}
    names = {"gpu_peak_tflops": "peak_tflops", "nics_per_node": "node_link"}
    sources = {
        names.get(key, key): site.near(f"partitions.{index}.{key}")
        for key, value in known.items()
        if value
    }
    if spec is not None:
        of_sheet = ["least_gib", "most_gib"]
        of_sheet += ["gpu_link"] * bool(spec.link) + ["peak_tflops"] * bool(
            spec.peaks and not peaks
        )
        sources |= dict.fromkeys(of_sheet, f"the vendor's data sheet of {gpu}")
    return MachineSize(
        site=site.value.name,
        partition=found.name,
        gpus_per_node=each,
        gpu=gpu,
        least_gib=spec and spec.least_gib,
        most_gib=spec and spec.gib,
        peak_tflops=peaks or dict(spec.peaks if spec else {}),
        gpu_link=(spec and spec.link) or None,
        node_link=link,
        max_nodes=found.max_nodes or found.nodes,
        max_gpus=found.max_gpus,
        sources=sources,
    )


def _partition(site: SourcedSite, name: str | None) -> tuple[int, Partition]:
    known = list(enumerate(site.value.partitions))
    if name is not None:
        named = [pair for pair in known if pair[1].name in (name, "*")]
        if not named:
            names = ", ".join(one.name for _, one in known)
            raise PlanError(f"{site.value.name} has no partition {name!r}", f"it has {names}")
        return named[0]
    default = [pair for pair in known if pair[1].default]
    with_gpus = [pair for pair in known if pair[1].gpus_per_node]
    return (*default, *with_gpus, *known, (0, Partition(name="*")))[0]
