"""One of several ranks: trains with strategies in fp64, and prints how they differ from single.

Arguments: STRATEGY:MODEL:OPTIMIZER[:SCHEDULE[:ACCUMULATE]]... Rank 0 prints one JSON object, with
the largest difference over all ranks of the loss, any gradient and any parameter of each case.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
import warnings

import torch
from torch import Tensor, distributed, nn

from hpc_train.model.training_strategies import GPT_SHAPES, TrainingRequest
from hpc_train.workload.models import make_model
from hpc_train.workload.process_group import RankGroup, joined
from hpc_train.workload.spawn_ranks import exit_code_of, leave
from hpc_train.workload.strategies import load_strategy
from hpc_train.workload.strategies.base import OptimizerChoice, ParallelModel, Setup

BATCH, STEPS = 16, 3
Batches = list[tuple[Tensor, Tensor]]


def make(model: str) -> nn.Sequential:
    torch.manual_seed(0)
    return make_model(model, channels=1, width=4, dtype=torch.float64)


def batches(model: str) -> Batches:
    random = torch.Generator().manual_seed(1)
    shape = GPT_SHAPES.get(model)
    if shape is None:
        images = torch.rand(STEPS, BATCH, 1, 8, 8, generator=random, dtype=torch.float64)
        labels = torch.randint(10, (STEPS, BATCH), generator=random)
        return list(zip(images, labels, strict=True))
    size = (STEPS, BATCH, shape.context + 1)
    tokens = torch.randint(shape.vocabulary, size, generator=random)
    return list(zip(tokens[..., :-1], tokens[..., 1:], strict=True))


def prepare(case: str, group: RankGroup) -> Setup:
    strategy, model, optimizer, schedule, accumulate = (*case.split(":"), "", "")[:5]
    request = TrainingRequest(
        strategy=strategy,
        model=model,
        world_size=group.world_size,
        device="cpu",
        schedule=schedule or "1F1B",
        accumulate=int(accumulate) if accumulate else None,
    )
    rate = {"sgd": 0.1, "adamw": 1e-3}[optimizer]
    choice = OptimizerChoice(name=optimizer, learning_rate=rate)
    return Setup(group=group, request=request, optimizer=choice, precision="fp64")


def train(setup: Setup, group: RankGroup) -> tuple[list[float], ParallelModel]:
    """Return the mean loss of each step over all data-parallel ranks, and the trained model."""
    request = setup.request
    strategy = load_strategy(request.strategy)
    assert strategy.check(request) is None, strategy.check(request)
    model = strategy.build(lambda: make(request.model), setup)
    losses = []
    for inputs, targets in batches(request.model):
        mine = slice(model.data_rank, None, request.data_size)
        loss = model.step(inputs[mine].contiguous(), targets[mine].contiguous())
        known = [0.0, 0.0] if loss is None else [float(loss), 1.0]
        total, count = group.sums(known)
        losses.append(total / count)
    return losses, model


def alone(case: str) -> tuple[list[float], ParallelModel]:
    _, model, optimizer, *_ = case.split(":")
    device = torch.device("cpu")
    group = RankGroup(rank=0, world_size=1, device=device, backend="none", launcher="single")
    return train(prepare(f"single:{model}:{optimizer}", group), group)


def furthest(one: dict[str, Tensor], other: dict[str, Tensor]) -> float:
    assert one.keys() == other.keys(), set(one) ^ set(other)
    return max(float((one[name] - other[name]).abs().max()) for name in one)


def differences(case: str, group: RankGroup) -> list[float]:
    losses, model = train(prepare(case, group), group)
    known, reference = alone(case)
    assert abs(known[0] - known[-1]) > 1e-3, "the training must change the model"
    mine = [
        max(abs(a - b) for a, b in zip(losses, known, strict=True)),
        furthest(model.state(gradients=True), reference.state(gradients=True)),
        furthest(model.state(), reference.state()),
    ]
    most = torch.tensor(mine, dtype=torch.float64)
    distributed.all_reduce(most, distributed.ReduceOp.MAX)
    return [float(value) for value in most]


def attempt(case: str, group: RankGroup) -> list[float] | str:
    """Return the differences; with TRACE set the text of an error, to see all cases."""
    if not os.environ.get("TRACE"):
        return differences(case, group)
    try:
        return differences(case, group)
    except (
        RuntimeError,
        AssertionError,
        AttributeError,
        TypeError,
        ValueError,
        NotImplementedError,
    ):
        return traceback.format_exc(limit=-6)


def main() -> int:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    with joined("gloo", "cpu") as group:
        found = {case: attempt(case, group) for case in sys.argv[1:]}
        if group.rank == 0:
            sys.stdout.write(json.dumps(found))
    return 0


if __name__ == "__main__":
    leave(exit_code_of(main))
