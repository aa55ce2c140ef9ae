"""Trains with strategies on several ranks, and prints how they differ from one process.

Arguments: "RANKS STRATEGY MODEL OPTIMIZER [KEY=VALUE]..." for each case; after `--nccl` the ranks
share the first GPU, which NCCL accepts of different hosts only. Prints one line of JSON for each
number of ranks, with the largest difference over all ranks of the loss, any gradient and any
parameter of each of its cases. The process that imports torch forks the ranks: a start of torch
takes longer than most cases.
"""

import json
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from itertools import groupby
from typing import cast

import torch
from torch import Tensor, distributed, nn
from torch.multiprocessing.spawn import start_processes

from hpc_train.jobs.strategies import GPT_SHAPES, GptShape, TrainingRequest, strategy_problem
from hpc_train.trainer.models import make_model
from hpc_train.trainer.optimizer import OptimizerChoice, parameter_type
from hpc_train.trainer.process_group import RankGroup, joined
from hpc_train.trainer.strategies import base, build
from hpc_train.trainer.strategies.base import ParallelModel, Setup
from tests.trainer.launching import meeting_point

BATCH, STEPS = 16, 3
ALONE = RankGroup(
    rank=0, world_size=1, device=torch.device("cpu"), backend="none", launcher="single"
)
# Four parts, as many as there are stages on two ranks of an interleaved schedule, or on four ranks.
GPT_SHAPES["gpt-test"] = GptShape(blocks=2, heads=4, width=16, context=16, vocabulary=64)
Batches = list[tuple[Tensor, Tensor]]


def make(model: str, dtype: torch.dtype, seed: int = 0) -> nn.Sequential:
    torch.manual_seed(seed)
    return make_model(model, channels=1, classes=10, width=4, dtype=dtype)


def batches(model: str, dtype: torch.dtype) -> Batches:
    random = torch.Generator().manual_seed(1)
    shape = GPT_SHAPES.get(model)
    if shape is None:
        images = torch.rand(STEPS, BATCH, 1, 8, 8, generator=random, dtype=dtype)
        labels = torch.randint(10, (STEPS, BATCH), generator=random)
        return list(zip(images, labels, strict=True))
    size = (STEPS, BATCH, shape.context + 1)
    tokens = torch.randint(shape.vocabulary, size, generator=random)
    return list(zip(tokens[..., :-1], tokens[..., 1:], strict=True))


def prepare(case: str, group: RankGroup) -> Setup:
    _, strategy, model, optimizer, *keys = case.split()
    given = dict(key.split("=") for key in keys)
    request = TrainingRequest(
        strategy=strategy,
        model=model,
        world_size=group.world_size,
        device=group.device.type,
        mesh=tuple(map(int, given["mesh"].split(","))) if "mesh" in given else (),
        schedule=given.get("schedule", "1F1B"),
        accumulate=int(given["accumulate"]) if "accumulate" in given else None,
        precision=given.get("precision", "fp64"),
        checkpointing=given.get("checkpointing", "none"),
        compile=given.get("compile", "none"),
    )
    choice = OptimizerChoice(
        name=optimizer,
        learning_rate={"sgd": 0.1, "adamw": 1e-3}[optimizer],
        clip_norm=float(given["clip_norm"]) if "clip_norm" in given else None,
        warmup_steps=int(given.get("warmup_steps", 0)),
    )
    return Setup(group=group, request=request, optimizer=choice)


def train(setup: Setup, group: RankGroup) -> tuple[list[float], ParallelModel]:
    """Return the mean loss of each step over all data-parallel ranks, and the trained model."""
    request = setup.request
    assert strategy_problem(request) is None, strategy_problem(request)
    dtype = parameter_type(request.precision)
    model = build(lambda: make(request.model, dtype), setup)
    losses = []
    for inputs, targets in batches(request.model, dtype):
        mine = slice(model.data_rank, None, request.data_size)
        loss = model.step(*(part[mine].contiguous().to(group.device) for part in (inputs, targets)))
        known = [0.0, 0.0] if loss is None else [float(loss), 1.0]
        total, count = group.sums(known)
        losses.append(total / count)
    return losses, model


def alone(case: str) -> tuple[list[float], ParallelModel]:
    """Return what one process makes of the same model, batches and update, without bf16 or fp16."""
    setup = prepare(case, ALONE)
    precision = "fp64" if setup.request.precision == "fp64" else "fp32"
    same = TrainingRequest(
        strategy="single", model=setup.request.model, world_size=1, precision=precision
    )
    return _alone(replace(setup, request=same))


_alone = cache(lambda setup: train(setup, ALONE))


def furthest(one: dict[str, Tensor], other: dict[str, Tensor]) -> float:
    assert one.keys() == other.keys(), set(one) ^ set(other)
    return max(float((one[name].cpu() - other[name].cpu()).abs().max()) for name in one)


def differences(case: str, group: RankGroup) -> list[float]:
    losses, model = train(prepare(case, group), group)
    known, reference = alone(case)
    assert abs(known[0] - known[-1]) > 1e-3, "the training must change the model"
    mine = [
        max(abs(a - b) for a, b in zip(losses, known, strict=True)),
        furthest(model.state(gradients=True), reference.state(gradients=True)),
        furthest(model.state(), reference.state()),
    ]
    most = torch.tensor(mine, dtype=torch.float64, device=group.device)
    distributed.all_reduce(most, distributed.ReduceOp.MAX)
    return [float(value) for value in most]


def one_rank(rank: int, size: int, cases: Sequence[str], backend: str) -> None:
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), NCCL_HOSTID=f"host{rank}")
    with joined(backend, "cuda" if backend == "nccl" else "cpu") as group:
        found = {case: differences(case, group) for case in cases}
    if rank == 0:
        sys.stdout.write(json.dumps(found) + "\n")
        sys.stdout.flush()


def main(cases: Sequence[str], backend: str = "gloo") -> None:
    torch.set_num_threads(1)
    base.COMPILER = "aot_eager"  # the graphs of inductor, without its code
    warnings.simplefilter("ignore")
    for case in cases:
        alone(case)  # here, so that each rank has it
    fork = cast("Callable[..., object]", start_processes)
    for ranks, group in groupby(cases, lambda case: int(case.split()[0])):
        os.environ.update({key: str(value) for key, value in meeting_point().items()})
        os.environ["WORLD_SIZE"] = str(ranks)
        fork(one_rank, (ranks, list(group), backend), nprocs=ranks, start_method="fork")


if __name__ == "__main__":
    words = sys.argv[1:]
    if words[0] == "--nccl":
        os.environ["CUDA_VISIBLE_DEVICES"] = "0"
        main(words[1:], "nccl")
    else:
        main(words)
