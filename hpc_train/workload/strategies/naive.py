"""naive: the layers are divided over the ranks, and the whole batch passes through them in turn.

While one rank computes the others wait: it saves memory, not time. `pipeline` fills the wait.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, distributed, nn

from hpc_train.workload.models import cut, mean_loss
from hpc_train.workload.strategies.base import CheckedStrategy, Setup
from hpc_train.workload.strategies.pipeline import StageState

_DIMENSIONS = 8


class Naive(CheckedStrategy):
    """Layers, their gradients and optimiser state are on one rank only."""

    def build(self, make: Callable[[], nn.Sequential], setup: Setup) -> NaiveStep:
        """Return this rank's layers."""
        group = setup.group
        stages = cut(make(), setup.request.model, group.world_size)
        return NaiveStep(stages[group.rank].to(group.device), setup)


class NaiveStep(StageState):
    """One forward pass down the ranks, one backward pass up."""

    data_rank = 0

    def __init__(self, stage: nn.Sequential, setup: Setup) -> None:
        super().__init__([stage])
        self.stage, self.setup = stage, setup
        self.optimizer = setup.optimizer.make(stage.parameters())

    def step(self, inputs: Tensor, targets: Tensor) -> Tensor | None:
        """Train on a whole batch; only the last rank has a loss."""
        rank, last = self.setup.group.rank, self.setup.group.world_size - 1
        self.optimizer.zero_grad()
        if rank > 0:
            inputs = receive(rank - 1, self.setup).requires_grad_()
        with self.setup.autocast():
            output = self.stage(inputs)
        if rank < last:
            send(output.detach(), rank + 1)
            output.backward(receive(rank + 1, self.setup))
        else:
            output = mean_loss(output, targets)
            output.backward()  # type: ignore[no-untyped-call]
        if rank > 0 and inputs.grad is not None:
            send(inputs.grad, rank - 1)
        self.optimizer.step()
        return output.detach() if rank == last else None


def send(tensor: Tensor, rank: int) -> None:
    """Send the shape of a tensor, then the tensor."""
    shape = [tensor.dim(), *tensor.shape]
    padded = shape + [0] * (_DIMENSIONS + 1 - len(shape))
    distributed.send(torch.tensor(padded, device=tensor.device), rank)
    distributed.send(tensor.contiguous(), rank)


def receive(rank: int, setup: Setup) -> Tensor:
    """Receive what `send` sent; values that pass between ranks have one type in a training."""
    dtypes = {"fp64": torch.float64, "bf16": torch.bfloat16}
    shape = torch.zeros(_DIMENSIONS + 1, dtype=torch.int64, device=setup.group.device)
    distributed.recv(shape, rank)
    dimensions, *sizes = shape.tolist()
    dtype = dtypes.get(setup.precision, torch.float32)
    tensor = torch.empty(sizes[:dimensions], dtype=dtype, device=setup.group.device)
    distributed.recv(tensor, rank)
    return tensor
