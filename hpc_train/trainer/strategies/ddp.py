"""single, dp, ddp and zero1: the whole model on each rank.

single: no communication; all others must equal it.
dp: one process copies the model to all its GPUs before each forward pass. torch recommends ddp
instead: the copies, the scattered batch and the gathered output pass through the first GPU, and one
Python process feeds them all.
ddp: each rank has a part of the batch; gradients are averaged. The all-reduce of a bucket of them
starts while the rest of the backward pass runs.
zero1: ddp, but each rank keeps the optimiser state of a part of the parameters. After its update it
broadcasts them: half as much traffic again as ddp.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from hpc_train.trainer.optimizer import HALVES
from hpc_train.trainer.strategies.base import LocalStep, Make, Setup


class Single:
    """The model, its gradients and optimiser state fit one device."""

    def build(self, make: Make, setup: Setup) -> LocalStep:
        """Return the model as it is."""
        model = setup.whole(make)
        return LocalStep(model, setup.updates(model.parameters()), setup)


class Dp:
    """On a CPU `DataParallel` only calls the model, so that the check refuses it."""

    def build(self, make: Make, setup: Setup) -> LocalStep:
        """Return the model wrapped for all visible GPUs; its parameters are on the first one."""
        gpus = list(range(torch.cuda.device_count()))
        model = make().to(f"cuda:{gpus[0]}")
        setup.blocks(model)
        keep_type(model, setup.request.precision, "cuda")
        copied = nn.DataParallel(model, device_ids=gpus)
        return LocalStep(copied, setup.updates(copied.parameters()), setup)


def keep_type(model: nn.Module, precision: str, device: str) -> None:
    """Let a model compute in this precision in each thread: those of DataParallel have fp16."""
    half = HALVES.get(precision)
    if half is not None:
        model.register_forward_pre_hook(lambda *_: torch.set_autocast_dtype(device, half))


class Ddp:
    """Parameters, gradients and optimiser state are whole on each rank."""

    def build(self, make: Make, setup: Setup) -> LocalStep:
        """Return the wrapped model; without a process group it is the model itself."""
        if setup.group.backend == "none":
            return Single().build(make, setup)
        wrapped = replicate(make, setup)
        updates, rank = setup.updates(wrapped.parameters()), setup.group.rank
        return LocalStep(wrapped, updates, setup, data_rank=rank, sync=on_last(wrapped))


class Zero1:
    """Parameters and gradients are whole on each rank, the optimiser state is divided."""

    def build(self, make: Make, setup: Setup) -> LocalStep:
        """Return the wrapped model with a divided optimiser."""
        # It takes long to import, and warns of torch.jit.
        from torch.distributed.optim import ZeroRedundancyOptimizer

        wrapped, choice = replicate(make, setup), setup.optimizer
        parameters = list(wrapped.parameters())
        optimizer = ZeroRedundancyOptimizer(parameters, choice.kind, **choice.arguments(parameters))
        rank, updates = setup.group.rank, setup.updates_by(optimizer)
        return LocalStep(wrapped, updates, setup, data_rank=rank, sync=on_last(wrapped))


def replicate(make: Make, setup: Setup) -> DistributedDataParallel:
    """Return the model with averaged gradients; they are views of the buckets, not copies."""
    device = setup.group.device
    return DistributedDataParallel(
        setup.whole(make),
        device_ids=[device] if device.type == "cuda" else None,
        gradient_as_bucket_view=True,
    )


def on_last(model: DistributedDataParallel) -> Callable[[bool], AbstractContextManager[object]]:
    """Return `sync` of a step: `no_sync` must surround the forward pass as well."""
    return lambda last: nullcontext() if last else model.no_sync()
