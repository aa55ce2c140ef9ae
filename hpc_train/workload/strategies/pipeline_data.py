"""pipeline+ddp and pipeline+fsdp: several pipelines, each with a part of the batch.

The ranks with the same stage average its gradients, or shard it. The dimension `stage` comes first,
as it sends the least.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import nn
from torch.distributed import ProcessGroup
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh

from hpc_train.workload.strategies.base import CheckedStrategy, Setup
from hpc_train.workload.strategies.fsdp import shard
from hpc_train.workload.strategies.pipeline import PipelinePlace, PipelineStep, own_stages


class PipelineDdp(CheckedStrategy):
    """The layers of a stage are whole on each of its ranks.

    The gradients are averaged after the last micro-batch. With torch 2.13 and gloo, a schedule
    over stages wrapped by DistributedDataParallel did not end its first step.
    """

    def build(self, make: Callable[[], nn.Sequential], setup: Setup) -> PipelineStep:
        """Return this rank's stages with averaged gradients."""
        mesh = _mesh(setup)
        stages = own_stages(make(), setup, mesh.get_local_rank("stage"))
        return _step(stages, mesh, setup, average=mesh.get_group("data"))


class PipelineFsdp(CheckedStrategy):
    """The layers of a stage are sharded over its ranks."""

    def build(self, make: Callable[[], nn.Sequential], setup: Setup) -> PipelineStep:
        """Return this rank's stages, sharded."""
        mesh = _mesh(setup)
        stages = own_stages(make(), setup, mesh.get_local_rank("stage"))
        for stage in stages.values():
            shard(stage, mesh["data"], setup)  # type: ignore[arg-type]
        return _step(stages, mesh, setup)


def _mesh(setup: Setup) -> DeviceMesh:
    sizes = setup.request.sizes
    return init_device_mesh(
        setup.group.device.type, tuple(sizes.values()), mesh_dim_names=tuple(sizes)
    )


def _step(
    stages: dict[int, nn.Module],
    mesh: DeviceMesh,
    setup: Setup,
    average: ProcessGroup | None = None,
) -> PipelineStep:
    place = PipelinePlace(
        group=mesh.get_group("stage"),
        data_rank=mesh.get_local_rank("data"),
        average=average,
    )
    return PipelineStep(stages, setup, place)
