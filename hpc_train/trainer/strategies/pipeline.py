"""pipeline: each rank has some layers; micro-batches follow one another through the ranks.

The schedule of torch.distributed.pipelining decides when a rank runs which of them: GPipe all
forward first, 1F1B alternately, the interleaved ones with two stages on each rank, the zero-bubble
ones with the gradients of weights in the gaps.

pipeline+ddp and pipeline+fsdp: several pipelines, each with a part of the batch. The ranks with the
same stage average its gradients, or shard it. The dimension `stage` comes first, as it sends least.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, distributed, nn
from torch.distributed import ProcessGroup
from torch.distributed.pipelining import PipelineStage
from torch.distributed.pipelining.schedules import get_schedule_class

from hpc_train.jobs.strategies import SCHEDULES
from hpc_train.trainer.models import cut, mean_loss
from hpc_train.trainer.process_group import of_ranks
from hpc_train.trainer.strategies.base import Make, Setup, whole_tensors
from hpc_train.trainer.strategies.fsdp import shard


class Pipeline:
    """Layers, their gradients and optimiser state are on one rank only."""

    def build(self, make: Make, setup: Setup) -> PipelineStep:
        """Return this rank's stages and their schedule."""
        stages = own_stages(make(), setup, setup.group.rank)
        return PipelineStep(stages, setup, distributed.group.WORLD)


class PipelineDdp:
    """The layers of a stage are whole on each of its ranks.

    The gradients are averaged after the last micro-batch. With torch 2.13 and gloo, a schedule
    over stages wrapped by DistributedDataParallel did not end its first step.
    """

    def build(self, make: Make, setup: Setup) -> PipelineStep:
        """Return this rank's stages with averaged gradients."""
        mesh = setup.mesh()
        stages = own_stages(make(), setup, mesh.get_local_rank("stage"))
        step = PipelineStep(stages, setup, mesh.get_group("stage"), mesh.get_local_rank("data"))
        step.average = mesh.get_group("data")
        return step


class PipelineFsdp:
    """The layers of a stage are sharded over its ranks."""

    def build(self, make: Make, setup: Setup) -> PipelineStep:
        """Return this rank's stages, sharded."""
        mesh = setup.mesh()
        stages = own_stages(make(), setup, mesh.get_local_rank("stage"))
        for stage in stages.values():
            # A schedule that computes gradients of weights later looks for the parameters that the
            # forward pass used, and skips those that were sharded again in between.
            shard(stage, mesh["data"], setup, reshard_after_forward=False)
        return PipelineStep(stages, setup, mesh.get_group("stage"), mesh.get_local_rank("data"))


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
        parts = of_ranks(mine, self.group)
        return {name: value for part in parts for name, value in part.items()}


class PipelineStep(StageState):
    """The stages of one rank, by their number, and their schedule.

    `group` is its pipeline, `average` the ranks over which its gradients are averaged, if any.
    """

    average: ProcessGroup | None = None

    def __init__(
        self,
        stages: dict[int, nn.Sequential],
        setup: Setup,
        group: ProcessGroup | None,
        data_rank: int = 0,
    ) -> None:
        super().__init__(list(stages.values()), group)
        request, self.setup, self.data_rank = setup.request, setup, data_rank
        self.first, self.last = 0 in stages, request.stages - 1 in stages
        parameters = [p for module in self.modules for p in module.parameters()]
        self.updates = setup.updates(parameters, group)
        device = setup.group.device
        self.placed = [
            PipelineStage(module, number, request.stages, device, group=group)
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


def own_stages(model: nn.Sequential, setup: Setup, rank: int) -> dict[int, nn.Sequential]:
    """Return the stages of a rank of the pipeline by their number, on its device."""
    request = setup.request
    setup.blocks(model)
    stages = cut(model, request.model, request.stages)
    ranks, kind = request.pipeline_ranks, SCHEDULES[request.schedule]
    numbers = [rank + ranks * i for i in range(kind.stages_per_rank)]
    if kind.v_shaped:
        numbers = [rank, request.stages - 1 - rank]
    return {number: stages[number].to(setup.group.device) for number in numbers}
