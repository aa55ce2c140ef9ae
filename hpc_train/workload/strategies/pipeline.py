"""pipeline: each rank has some layers; micro-batches follow one another through the ranks.

The schedule of torch.distributed.pipelining decides when a rank runs which of them: GPipe all
forward first, 1F1B alternately, the interleaved ones with two stages on each rank, the zero-bubble
ones with the gradients of weights in the gaps.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, distributed, nn
from torch.distributed import ProcessGroup
from torch.distributed.pipelining import PipelineStage
from torch.distributed.pipelining.schedules import get_schedule_class

from hpc_train.model.training_strategies import SCHEDULES
from hpc_train.workload.models import cut, mean_loss
from hpc_train.workload.strategies.base import CheckedStrategy, Setup, whole_tensors


class Pipeline(CheckedStrategy):
    """Layers, their gradients and optimiser state are on one rank only."""

    def build(self, make: Callable[[], nn.Sequential], setup: Setup) -> PipelineStep:
        """Return this rank's stages and their schedule."""
        group = setup.group
        stages = own_stages(make(), setup, group.rank)
        return PipelineStep(stages, setup, PipelinePlace(group=distributed.group.WORLD))


class StageState:
    """The state of a model whose layers are on several ranks: each contributes its own."""

    def __init__(self, modules: Sequence[nn.Module], group: ProcessGroup | None = None) -> None:
        self.modules, self.group = modules, group
        self.model: nn.Module = nn.Sequential(
            OrderedDict(layer for module in modules for layer in module.named_children())
        )

    def state(self, *, gradients: bool = False) -> dict[str, Tensor]:
        """Return all parameters or gradients, whole and by name."""
        mine = whole_tensors(self.model, gradients=gradients)
        parts: list[Any] = [None] * distributed.get_world_size(self.group)
        distributed.all_gather_object(parts, mine, group=self.group)
        return {name: value for part in parts for name, value in part.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelinePlace:
    """This rank's pipeline, `group`, and the ranks over which gradients are averaged, if any."""

    group: ProcessGroup | None
    data_rank: int = 0
    average: ProcessGroup | None = None


class PipelineStep(StageState):
    """The stages of one rank, by their number, and their schedule."""

    def __init__(self, stages: dict[int, nn.Module], setup: Setup, place: PipelinePlace) -> None:
        super().__init__(list(stages.values()), place.group)
        request = setup.request
        self.setup, self.data_rank, self.average = setup, place.data_rank, place.average
        self.first, self.last = 0 in stages, request.stages - 1 in stages
        parameters = [p for module in self.modules for p in module.parameters()]
        self.updates = setup.updates(parameters, place.group)
        device = setup.group.device
        self.placed = [
            PipelineStage(module, number, request.stages, device, group=place.group)
            for number, module in stages.items()
        ]
        kind: Any = get_schedule_class(request.schedule)
        several = SCHEDULES[request.schedule].stages_per_rank > 1
        # Each micro-batch has the mean of its samples: the schedule divides by their number.
        self.schedule = kind(
            self.placed if several else self.placed[0], request.microbatches, loss_fn=mean_loss
        )

    def step(self, inputs: Tensor, targets: Tensor) -> Tensor | None:
        """Train on a batch; only the rank with the last stage has a loss."""
        self.updates.optimizer.zero_grad()
        losses: list[Tensor] = []
        given = {"target": targets, "losses": losses} if self.last else {}
        with self.setup.autocast():
            self.schedule.step(*((inputs,) if self.first else ()), **given)
        for stage in self.placed:  # the logits, which may be more than all parameters
            stage.clear_runtime_states()
        self._average_gradients()
        self.updates.apply()
        return torch.stack([loss.detach() for loss in losses]).mean() if self.last else None

    def _average_gradients(self) -> None:
        if self.average is None:
            return
        size = distributed.get_world_size(self.average)
        for module in self.modules:
            for parameter in module.parameters():
                if parameter.grad is not None:
                    distributed.all_reduce(parameter.grad, group=self.average)
                    parameter.grad /= size


def own_stages(model: nn.Sequential, setup: Setup, rank: int) -> dict[int, nn.Module]:
    """Return the stages of a rank of the pipeline by their number, on its device."""
    request = setup.request
    setup.blocks(model)
    stages = cut(model, request.model, request.stages)
    ranks, kind = request.pipeline_ranks, SCHEDULES[request.schedule]
    numbers = [rank + ranks * i for i in range(kind.stages_per_rank)]
    if kind.v_shaped:
        numbers = [rank, request.stages - 1 - rank]
    return {number: stages[number].to(setup.group.device) for number in numbers}
