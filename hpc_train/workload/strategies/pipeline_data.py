"""pipeline+ddp and pipeline+fsdp: several pipelines, each with a part of the batch.

The same stage of all pipelines is one model for ddp or fsdp. The dimension `stage` comes first, as
it sends the least.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.nn.parallel import DistributedDataParallel

from hpc_train.workload.strategies.base import CheckedStrategy, Setup
from hpc_train.workload.strategies.fsdp import shard
from hpc_train.workload.strategies.pipeline import PipelineStep, own_stages


class PipelineDdp(CheckedStrategy):
    """The layers of a stage are whole on each of its ranks."""

    def build(self, make: Callable[[], nn.Sequential], setup: Setup) -> PipelineStep:
        """Return this rank's stages with averaged gradients."""
        mesh = _mesh(setup)
        stages = own_stages(make(), setup, mesh.get_local_rank("stage"))
        data = mesh.get_group("data")
        wrapped: dict[int, nn.Module] = {
            number: DistributedDataParallel(stage, process_group=data, gradient_as_bucket_view=True)
            for number, stage in stages.items()
        }
        return _step(wrapped, mesh, setup)


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


def _step(stages: dict[int, nn.Module], mesh: DeviceMesh, setup: Setup) -> PipelineStep:
    return PipelineStep(
        stages,
        setup,
        rank=mesh.get_local_rank("stage"),
        group=mesh.get_group("stage"),
        data_rank=mesh.get_local_rank("data"),
    )
