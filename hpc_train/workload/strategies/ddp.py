"""ddp: each rank has the whole model and a part of the batch; gradients are averaged.

The all-reduce of a bucket of gradients starts while the rest of the backward pass runs.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

from torch import nn
from torch.nn.parallel import DistributedDataParallel

from hpc_train.workload.strategies.base import CheckedStrategy, LocalStep, Setup


class Ddp(CheckedStrategy):
    """Parameters, gradients and optimiser state are whole on each rank."""

    def build(self, make: Callable[[], nn.Sequential], setup: Setup) -> LocalStep:
        """Return the wrapped model; without a process group it is the model itself."""
        model = make().to(setup.group.device)
        setup.blocks(model)
        if setup.group.backend == "none":
            return LocalStep(model, setup.updates(model.parameters()), setup)
        wrapped = replicate(model, setup)
        updates = setup.updates(wrapped.parameters())
        rank = setup.group.rank
        return LocalStep(wrapped, updates, setup, data_rank=rank, sync=on_last(wrapped))


def replicate(model: nn.Module, setup: Setup) -> DistributedDataParallel:
    """Return the model with averaged gradients; they are views of the buckets, not copies."""
    device = setup.group.device
    return DistributedDataParallel(
        model,
        device_ids=[device] if device.type == "cuda" else None,
        gradient_as_bucket_view=True,
    )


def on_last(model: DistributedDataParallel) -> Callable[[bool], AbstractContextManager[object]]:
    """Return `sync` of a step: `no_sync` must surround the forward pass as well."""
    return lambda last: nullcontext() if last else model.no_sync()
