"""naive: the layers are divided over the ranks, and the whole batch passes through them in turn.

While one rank computes the others wait: it saves memory, not time. `pipeline` fills the wait.
"""

from __future__ import annotations

import torch
from torch import Tensor, distributed, nn

from hpc_train.trainer.models import cut, mean_loss
from hpc_train.trainer.strategies.base import Make, Setup
from hpc_train.trainer.strategies.pipeline import StageState

_DIMENSIONS = 8
_TYPES = (torch.float32, torch.float64, torch.bfloat16)


class Naive:
    """Layers, their gradients and optimiser state are on one rank only."""

    def build(self, make: Make, setup: Setup) -> NaiveStep:
        """Return this rank's layers."""
        group = setup.group
        model = make()
        setup.blocks(model)
        stages = cut(model, setup.request.model, group.world_size)
        return NaiveStep(stages[group.rank].to(group.device), setup)


class NaiveStep(StageState):
    """One forward pass down the ranks, one backward pass up."""

    data_rank = 0

    def __init__(self, stage: nn.Sequential, setup: Setup) -> None:
        super().__init__([stage])
        self.stage, self.setup = stage, setup
        self.updates = setup.updates(stage.parameters(), distributed.group.WORLD)

    def step(self, inputs: Tensor, targets: Tensor) -> Tensor | None:
        """Train on a whole batch; only the last rank has a loss."""
        rank, last = self.setup.group.rank, self.setup.group.world_size - 1
        self.updates.optimizer.zero_grad()
        device = self.setup.group.device
        if rank > 0:
            inputs = receive(rank - 1, device).requires_grad_()
        with self.setup.autocast():
            output = self.stage(inputs)
        if rank < last:
            send(output.detach(), rank + 1)
            output.backward(receive(rank + 1, device))
        else:
            output = mean_loss(output, targets)
            output.backward()  # type: ignore[no-untyped-call]
        if rank > 0 and inputs.grad is not None:
            send(inputs.grad, rank - 1)
        self.updates.apply()
        return output.detach() if rank == last else None


def send(tensor: Tensor, rank: int) -> None:
    """Send the type and shape of a tensor, then the tensor."""
    header = [_TYPES.index(tensor.dtype), tensor.dim(), *tensor.shape]
    padded = header + [0] * (_DIMENSIONS + 2 - len(header))
    distributed.send(torch.tensor(padded, device=tensor.device), rank)
    distributed.send(tensor.contiguous(), rank)


def receive(rank: int, device: torch.device) -> Tensor:
    """Receive what `send` sent; with autocast, the type depends on the layer."""
    header = torch.zeros(_DIMENSIONS + 2, dtype=torch.int64, device=device)
    distributed.recv(header, rank)
    dtype, dimensions, *sizes = header.tolist()
    tensor = torch.empty(sizes[:dimensions], dtype=_TYPES[dtype], device=device)
    distributed.recv(tensor, rank)
    return tensor
