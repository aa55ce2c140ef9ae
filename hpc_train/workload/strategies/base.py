"""The protocol of a strategy, and the step that most strategies share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor

from hpc_train.model.strategy_checks import strategy_problem
from hpc_train.model.training_strategies import TrainingRequest
from hpc_train.workload.models import mean_loss
from hpc_train.workload.process_group import RankGroup

Parameters = Iterable[nn.Parameter]


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizerChoice:
    """`sgd` with momentum 0.9, or `adamw` with the defaults of torch; one learning rate."""

    name: str
    learning_rate: float

    @property
    def kind(self) -> type[torch.optim.Optimizer]:
        """The class of torch."""
        return torch.optim.SGD if self.name == "sgd" else torch.optim.AdamW

    @property
    def arguments(self) -> dict[str, Any]:
        """Its keyword arguments."""
        momentum = {"momentum": 0.9} if self.name == "sgd" else {}
        return {"lr": self.learning_rate, **momentum}

    def make(self, parameters: Parameters) -> torch.optim.Optimizer:
        """Return the optimiser of these parameters; those of a sharded model are its shards."""
        return self.kind(parameters, **self.arguments)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What a strategy builds from; `precision` is `fp32`, `bf16` (autocast) or `fp64`."""

    group: RankGroup
    request: TrainingRequest
    optimizer: OptimizerChoice
    precision: str = "fp32"

    def autocast(self) -> AbstractContextManager[object]:
        """Return the context of a forward pass."""
        if self.precision != "bf16":
            return nullcontext()
        return torch.autocast(self.group.device.type, torch.bfloat16)


class ParallelModel(Protocol):
    """A model on this rank, ready to train; `data_rank` numbers the parts of the global batch."""

    data_rank: int

    def step(self, inputs: Tensor, targets: Tensor) -> Tensor | None:
        """Train on this rank's part of a global batch; return its mean loss, if it is here."""
        ...

    def state(self, *, gradients: bool = False) -> dict[str, Tensor]:
        """Return all parameters, or the gradients of the last step, whole and by name.

        Every rank must call it; on each the result is the same.
        """
        ...


class Strategy(Protocol):
    """A way to train; `make` returns the same whole model on each rank, on the CPU."""

    def check(self, request: TrainingRequest) -> str | None:
        """Return why it cannot run, and what would fit, in a sentence; None: it can."""
        ...

    def build(self, make: Callable[[], nn.Sequential], setup: Setup) -> ParallelModel:
        """Return the model on this rank's device, with its optimiser."""
        ...


class CheckedStrategy:
    """The check of every built-in strategy: the rules need no torch."""

    def check(self, request: TrainingRequest) -> str | None:
        """Return why the strategy cannot run, or None."""
        return strategy_problem(request)


class LocalStep:
    """The step of a strategy in which each rank calls the whole model.

    `sync` receives whether a micro-batch is the last one of the step, and returns the context of
    its forward and backward pass: gradients are exchanged only after the last.
    """

    def __init__(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        setup: Setup,
        *,
        data_rank: int = 0,
        sync: Callable[[bool], AbstractContextManager[object]] = lambda last: nullcontext(),
    ) -> None:
        self.model, self.optimizer, self.setup = model, optimizer, setup
        self.data_rank, self.sync = data_rank, sync

    def step(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """Train on this rank's part of a global batch; return its mean loss."""
        self.optimizer.zero_grad()
        count = self.setup.request.microbatches
        parts = list(zip(inputs.chunk(count), targets.chunk(count), strict=True))
        total = torch.zeros((), dtype=torch.float64, device=inputs.device)
        for number, (some_inputs, some_targets) in enumerate(parts, start=1):
            with self.sync(number == count):
                loss = self.loss(some_inputs, some_targets) / count
                loss.backward()  # type: ignore[no-untyped-call]
            total += loss.detach()
        self.optimizer.step()
        return total

    def loss(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """Return the mean loss of a micro-batch."""
        with self.setup.autocast():
            return mean_loss(self.model(inputs), targets)

    def state(self, *, gradients: bool = False) -> dict[str, Tensor]:
        """Return all parameters or gradients, whole and by name."""
        return whole_tensors(self.model, gradients=gradients)


def whole_tensors(model: nn.Module, *, gradients: bool = False) -> dict[str, Tensor]:
    """Return copies of the parameters or gradients of a model by name; shards are gathered."""
    found = {}
    for name, parameter in model.named_parameters():
        value = parameter.grad if gradients else parameter.detach()
        if value is None:
            continue
        if isinstance(value, DTensor):
            value = value.full_tensor()
        found[name.removeprefix("module.")] = value.clone()
    return found
