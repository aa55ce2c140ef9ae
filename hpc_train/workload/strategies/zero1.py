"""zero1: ddp, but each rank keeps the optimiser state of a part of the parameters.

After its update each rank broadcasts the parameters of its part: half as much traffic again as ddp.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import nn
from torch.distributed.optim import ZeroRedundancyOptimizer

from hpc_train.workload.strategies.base import CheckedStrategy, LocalStep, Setup
from hpc_train.workload.strategies.ddp import on_last, replicate


class Zero1(CheckedStrategy):
    """Parameters and gradients are whole on each rank, the optimiser state is divided."""

    def build(self, make: Callable[[], nn.Sequential], setup: Setup) -> LocalStep:
        """Return the wrapped model with a divided optimiser."""
        model, choice = make().to(setup.group.device), setup.optimizer
        setup.blocks(model)
        wrapped = replicate(model, setup)
        parameters = list(wrapped.parameters())
        optimizer = ZeroRedundancyOptimizer(parameters, choice.kind, **choice.arguments(parameters))
        rank, updates = setup.group.rank, setup.updates_by(optimizer)
        return LocalStep(wrapped, updates, setup, data_rank=rank, sync=on_last(wrapped))
