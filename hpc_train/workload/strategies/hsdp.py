"""hsdp: fsdp inside a group of ranks, ddp between the groups.

The parameters are gathered inside the group only, which should be a node; between the groups the
shards of the gradients are averaged.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import nn
from torch.distributed.device_mesh import init_device_mesh

from hpc_train.workload.strategies.base import CheckedStrategy, LocalStep, Setup
from hpc_train.workload.strategies.fsdp import sharded_step


class Hsdp(CheckedStrategy):
    """Everything is divided by the ranks of a group."""

    def build(self, make: Callable[[], nn.Sequential], setup: Setup) -> LocalStep:
        """Return the model, sharded over the last dimension of the mesh."""
        group, sizes = setup.group, setup.request.sizes
        mesh = init_device_mesh(
            group.device.type, tuple(sizes.values()), mesh_dim_names=tuple(sizes)
        )
        return sharded_step(make().to(group.device), mesh, setup, group.rank)
