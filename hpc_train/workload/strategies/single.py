"""single: one process trains the whole model on the whole batch; all others must equal it."""

from __future__ import annotations

from collections.abc import Callable

from torch import nn

from hpc_train.workload.strategies.base import CheckedStrategy, LocalStep, Setup


class Single(CheckedStrategy):
    """No communication; the model, its gradients and optimiser state fit one device."""

    def build(self, make: Callable[[], nn.Sequential], setup: Setup) -> LocalStep:
        """Return the model as it is."""
        model = make().to(setup.group.device)
        setup.blocks(model)
        return LocalStep(model, setup.updates(model.parameters()), setup)
