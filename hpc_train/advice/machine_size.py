"""MachineSize: what a forecast needs to know of the nodes of a partition, each with its source."""

import math

from hpc_train.base.value import Value

# No machine has more.
MOST_RANKS = 1_048_576


class MachineSize(Value, frozen=True, kw_only=True):
    """One kind of node; None is unknown, 0 GPUs is a node without, on which ranks are counted.

    Memory of a GPU in GiB, from its smallest variant to its largest; `peak_tflops` by precision;
    bandwidths in GB/s in one direction: `gpu_link` of one GPU to its neighbours, `node_link` of all
    adapters of a node together; the nodes of a leaf switch or a block of Slurm's topology, one of
    which is known at most. `sources` are the name of each value and where it comes from.
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
    nodes_per_switch: int | None = None
    nodes_per_block: int | None = None
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
