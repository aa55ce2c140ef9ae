"""dp: one process copies the model to all its GPUs before each forward pass.

torch recommends ddp instead: the copies, the scattered batch and the gathered output pass through
the first GPU, and one Python process feeds them all.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from hpc_train.workload.strategies.base import CheckedStrategy, LocalStep, Setup


class Dp(CheckedStrategy):
    """On a CPU `DataParallel` only calls the model, so that the check refuses it."""

    def build(self, make: Callable[[], nn.Sequential], setup: Setup) -> LocalStep:
        """Return the model wrapped for all visible GPUs; its parameters are on the first one."""
        gpus = list(range(torch.cuda.device_count()))
        model = make().to(f"cuda:{gpus[0]}")
        setup.blocks(model)
        copied = nn.DataParallel(model, device_ids=gpus)
        return LocalStep(copied, setup.updates(copied.parameters()), setup)
