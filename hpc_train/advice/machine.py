"""Profile and partition -> the machine that forecasts are about, each value with its source."""

from __future__ import annotations

import math
from typing import Any

from msgspec.structs import replace

from hpc_train.base.errors import PlanError
from hpc_train.base.value import Value
from hpc_train.sites.gpu_specs import GpuSpec, gpu_spec
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


_SHEET = "the vendor's data sheet"
_BITS = 8.0


def machine_of(site: SourcedSite, partition: str | None, *, gpus: bool = True) -> MachineSize:
    """Return the nodes of a partition: by name, else the default, else the first with GPUs.

    Without `gpus` theirs do not count: a job that requests none has ranks on processors.

    Raises:
        PlanError: the site has no partition of this name.
    """
    index, found = _partition(site, partition)
    if not gpus:
        found = replace(found, gpus_per_node=0, gpu_model=None, gpu_type=None, gpu_peak_tflops={})
    spec = gpu_spec(found.gpu_model or found.gpu_type or "") if found.gpus_per_node else None
    values, sources = _of_profile(site, index, found)
    if spec is not None:
        more = _of_sheet(found, spec, values)
        values |= more
        sources |= dict.fromkeys(more, f"{_SHEET} of {found.gpu_model or found.gpu_type}")
    return MachineSize(site=site.value.name, partition=found.name, sources=sources, **values)


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


def _of_profile(
    site: SourcedSite, index: int, found: Partition
) -> tuple[dict[str, Any], dict[str, str]]:
    values: dict[str, Any] = {
        "gpus_per_node": found.gpus_per_node or 0,
        "gpu": found.gpu_model or found.gpu_type or "",
        "peak_tflops": found.gpu_peak_tflops,
        "node_link": _node_link(found),
        "max_nodes": found.max_nodes or found.nodes,
        "max_gpus": found.max_gpus,
    }
    keys = {
        "gpus_per_node": "gpus_per_node",
        "peak_tflops": "gpu_peak_tflops",
        "node_link": "nics_per_node",
    }
    sources = {
        name: site.near(f"partitions.{index}.{key}") for name, key in keys.items() if values[name]
    }
    return values, sources


def _node_link(found: Partition) -> float | None:
    """Return the bandwidth of a node's adapters [GB/s]; None where the profile lacks a number."""
    if found.nics_per_node is None or found.nic_gbps is None:
        return None
    return found.nics_per_node * found.nic_gbps / _BITS


def _of_sheet(found: Partition, spec: GpuSpec, values: dict[str, Any]) -> dict[str, Any]:
    stated: dict[str, Any] = {"least_gib": spec.least_gib, "most_gib": spec.gib}
    if spec.link:
        stated["gpu_link"] = spec.link
    if not values["peak_tflops"] and spec.peaks:
        stated["peak_tflops"] = dict(spec.peaks)
    return stated
