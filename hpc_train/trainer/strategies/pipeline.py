"""pipeline: each rank has some layers; micro-batches follow one another through the ranks.

The schedule of torch.distributed.pipelining decides when a rank runs which of them: GPipe all
forward first, 1F1B alternately, the interleaved ones with two stages on each rank, the zero-bubble
ones with the gradients of weights in the gaps.

pipeline+ddp and pipeline+fsdp: several pipelines, each with a part of the batch. The ranks with the
same stage average its gradients, or shard it. The dimension `stage` comes first, as it sends least.

naive: the layers are divided over the ranks, and the whole batch passes through them in turn. While
one rank computes the others wait: it saves memory, not time. `pipeline` fills the wait.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
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
from hpc_train.trainer.strategies.whole_model import shard


def pipeline(make: Make, setup: Setup) -> PipelineStep:
    """Return this rank's stages and their schedule."""
    stages = own_stages(make(), setup, setup.group.rank)
    return PipelineStep(stages, setup, distributed.group.WORLD)


def several_pipelines(make: Make, setup: Setup) -> PipelineStep:
    """Return this rank's stages, sharded over the ranks of the stage, or with averaged gradients.

    They are averaged after the last micro-batch: with torch 2.13 and gloo, a schedule over stages
    wrapped by DistributedDataParallel did not end its first step.
    """
    mesh = setup.mesh()
    rank = mesh.get_local_rank("data")
    stages = own_stages(make(), setup, mesh.get_local_rank("stage"))
    sharded = setup.request.strategy == "pipeline+fsdp"
    for stage in stages.values() if sharded else ():
        # A schedule that computes gradients of weights later looks for the parameters that the
        # forward pass used, and skips those that were sharded again in between.
        shard(stage, mesh["data"], setup, reshard_after_forward=False)
    step = PipelineStep(stages, setup, mesh.get_group("stage"), rank)
    step.average = None if sharded else mesh.get_group("data")
    return step


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
        for parameter in self.model.parameters() if self.average else ():
            if parameter.grad is not None:
                distributed.all_reduce(parameter.grad, group=self.average)
                parameter.grad /= distributed.get_world_size(self.average)
        self.updates.apply()
        return torch.stack([loss.detach() for loss in losses]).mean() if self.last else None


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


# The most dimensions of a tensor, and the types of activations.
_DIMENSIONS, _TYPES = 8, (torch.float32, torch.float64, torch.bfloat16)


def naive(make: Make, setup: Setup) -> NaiveStep:
    """Return this rank's layers."""
    group, model = setup.group, make()
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
        group = self.setup.group
        rank, last, device = group.rank, group.world_size - 1, group.device
        self.updates.optimizer.zero_grad()
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


STRATEGIES: dict[str, Callable[[Make, Setup], PipelineStep | NaiveStep]] = {
    "pipeline": pipeline,
    "pipeline+ddp": several_pipelines,
    "pipeline+fsdp": several_pipelines,
    "naive": naive,
}
