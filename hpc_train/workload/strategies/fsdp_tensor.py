"""fsdp+tensor: tensor inside groups of neighbouring ranks, fsdp between the groups.

Tensor parallelism needs the fastest links, so that its group should be inside a node.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import nn
from torch.distributed.device_mesh import init_device_mesh

from hpc_train.workload.strategies.base import CheckedStrategy, Setup
from hpc_train.workload.strategies.fsdp import on_last, shard
from hpc_train.workload.strategies.tensor import TensorStep, divide


class FsdpTensor(CheckedStrategy):
    """Matrices are divided twice, activations by the tensor dimension."""

    def build(self, make: Callable[[], nn.Sequential], setup: Setup) -> TensorStep:
        """Return the model, first divided, then sharded."""
        device, sizes = setup.group.device, setup.request.sizes
        mesh = init_device_mesh(device.type, tuple(sizes.values()), mesh_dim_names=tuple(sizes))
        model = make().to(device)
        divide(model, mesh["tensor"])
        setup.blocks(model)
        sharded = shard(model, mesh["data"], setup)
        updates = setup.updates(model.parameters())
        rank = mesh.get_local_rank("data")
        return TensorStep(model, updates, setup, data_rank=rank, sync=on_last(sharded))
