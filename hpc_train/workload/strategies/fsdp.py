"""fsdp: each rank keeps a shard of every parameter, its gradient and its optimiser state (FSDP2).

A layer's parameters are gathered before it runs, forward and backward, and freed after it; the
gradients are reduced and scattered. All ranks must start from the same weights: the shards of
different initialisations would be joined.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

from torch import nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard

from hpc_train.workload.precision import sharded_policy
from hpc_train.workload.strategies.base import CheckedStrategy, LocalStep, Setup


class Fsdp(CheckedStrategy):
    """Everything is divided by the number of ranks."""

    def build(self, make: Callable[[], nn.Sequential], setup: Setup) -> LocalStep:
        """Return the sharded model."""
        group = setup.group
        mesh = init_device_mesh(group.device.type, (group.world_size,), mesh_dim_names=("shard",))
        return sharded_step(make().to(group.device), mesh, setup, group.rank)


def sharded_step(model: nn.Sequential, mesh: DeviceMesh, setup: Setup, data_rank: int) -> LocalStep:
    """Shard the model and return its step; the optimiser is made after it, from the shards."""
    setup.blocks(model)
    sharded = shard(model, mesh, setup)
    updates = setup.updates(model.parameters())
    return LocalStep(model, updates, setup, data_rank=data_rank, sync=on_last(sharded))


def shard(model: nn.Sequential, mesh: DeviceMesh, setup: Setup) -> FSDPModule:
    """Shard each layer with parameters, then the model; a mesh of two replicates and shards."""
    policy = sharded_policy(setup.request.precision)
    for layer in model.children():
        if next(layer.parameters(), None) is not None:
            if policy.param_dtype is not None:
                _shard_norms(layer, mesh)
            fully_shard(layer, mesh=mesh, mp_policy=policy)
    return fully_shard(model, mesh=mesh, mp_policy=policy)


def _shard_norms(layer: nn.Module, mesh: DeviceMesh) -> None:
    """Batch normalisation keeps fp32, like its running statistics; in one group for a layer.

    Each group costs a collective more in each pass, so that it is made for half precision only.
    """
    norms: list[nn.Module] = [m for m in layer.modules() if isinstance(m, nn.BatchNorm2d)]
    if norms:
        fully_shard(norms, mesh=mesh)


def on_last(model: FSDPModule) -> Callable[[bool], AbstractContextManager[object]]:
    """Return `sync` of a step: parameters stay gathered until its last micro-batch.

    Without `set_reshard_after_backward` each micro-batch would gather them again.
    """

    def sync(last: bool) -> AbstractContextManager[object]:
        model.set_requires_gradient_sync(last)
        model.set_reshard_after_backward(last)
        return nullcontext()

    return sync
