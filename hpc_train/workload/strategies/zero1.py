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
        model = replicate(make().to(setup.group.device), setup)
        choice = setup.optimizer
        optimizer = ZeroRedundancyOptimizer(model.parameters(), choice.kind, **choice.arguments)
        rank = setup.group.rank
        return LocalStep(model, optimizer, setup, data_rank=rank, sync=on_last(model))
