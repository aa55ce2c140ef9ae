"""fsdp: each rank keeps a shard of every parameter, its gradient and its optimiser state (FSDP2).

A layer's parameters are gathered before it runs, forward and backward, and freed after it; the
gradients are reduced and scattered. All ranks must start from the same weights: the shards of
different initialisations would be joined.

hsdp: fsdp inside a group of ranks, which should be a node, ddp between the groups: there the shards
of the gradients are averaged.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from torch import nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard

from hpc_train.trainer.optimizer import sharded_policy
from hpc_train.trainer.strategies.base import LocalStep, Make, Setup


class Fsdp:
    """Everything is divided by the number of ranks."""

    def build(self, make: Make, setup: Setup) -> LocalStep:
        """Return the sharded model; the optimiser is made after it, from the shards."""
        model, rank = make().to(setup.group.device), setup.group.rank
        setup.blocks(model)
        sharded = shard(model, self.mesh(setup), setup)
        updates = setup.updates(model.parameters())
        return LocalStep(model, updates, setup, data_rank=rank, sync=on_last(sharded))

    def mesh(self, setup: Setup) -> DeviceMesh:
        """Return the ranks that share the parameters."""
        group = setup.group
        return init_device_mesh(group.device.type, (group.world_size,), mesh_dim_names=("shard",))


class Hsdp(Fsdp):
    """Everything is divided by the ranks of a group, the last dimension of the mesh."""

    def mesh(self, setup: Setup) -> DeviceMesh:
        """Return the groups and their ranks."""
        return setup.mesh()


def shard(model: nn.Sequential, mesh: DeviceMesh, setup: Setup, **options: Any) -> FSDPModule:
    """Shard each layer with parameters, then the model; a mesh of two replicates and shards.

    `options` are those of `fully_shard`.
    """
    policy = sharded_policy(setup.request.precision)
    for layer in model.children():
        if next(layer.parameters(), None) is not None:
            # Batch normalisation keeps fp32, like its running statistics; in one group for a layer,
            # as each costs a collective more in each pass.
            norms: list[nn.Module] = [m for m in layer.modules() if isinstance(m, nn.BatchNorm2d)]
            if norms and policy.param_dtype is not None:
                fully_shard(norms, mesh=mesh, **options)
            fully_shard(layer, mesh=mesh, mp_policy=policy, **options)
    return fully_shard(model, mesh=mesh, mp_policy=policy, **options)


def on_last(model: FSDPModule) -> Callable[[bool], AbstractContextManager[object]]:
    """Return `sync` of a step: parameters stay gathered until its last micro-batch.

    Without `set_reshard_after_backward` each micro-batch would gather them again.
    """

    def sync(last: bool) -> AbstractContextManager[object]:
        model.set_requires_gradient_sync(last)
        model.set_reshard_after_backward(last)
        return nullcontext()

    return sync
