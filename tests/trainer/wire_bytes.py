"""Prints what a rank sends in a step and keeps after it, and the formulas of both, for strategies.

Arguments: the strategies. Runs two ranks of gloo; its network namespace must have no other traffic.
"""

import json
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import cast

import torch
from torch.multiprocessing.spawn import start_processes

from hpc_train.jobs import strategies
from hpc_train.jobs.strategies import GPT_SHAPES, GptShape, TrainingRequest
from hpc_train.trainer.measurements import interface_bytes, tensor_bytes
from hpc_train.trainer.models import make_model
from hpc_train.trainer.optimizer import OptimizerChoice
from hpc_train.trainer.process_group import RankGroup, joined
from hpc_train.trainer.strategies import build
from hpc_train.trainer.strategies.base import Setup
from tests.trainer.launching import meeting_point

RANKS, BATCH, UNCOUNTED, COUNTED = 2, 8, 2, 3
# Wide, so that the headers of its messages are below 1 % of them.
GPT_SHAPES["gpt-wide"] = GptShape(blocks=2, heads=4, width=256, context=64, vocabulary=2048)


def counted(strategy: str, group: RankGroup) -> list[float]:
    request = TrainingRequest(
        strategy=strategy, model="gpt-wide", world_size=RANKS, device="cpu", precision="fp32"
    )
    setup = Setup(
        group=group, request=request, optimizer=OptimizerChoice(name="sgd", learning_rate=0.1)
    )
    kept = -tensor_bytes()
    make = partial(make_model, "gpt-wide", channels=0, classes=0, width=0, dtype=torch.float32)
    model = build(make, setup)
    parameters = sum(parameter.numel() for parameter in make().parameters())
    size = strategies.TrainingSize(parameters=parameters, optimizer="sgd", batch=BATCH)
    tokens = torch.randint(256, (BATCH // request.data_size, 65))
    before = 0
    for step in range(UNCOUNTED + COUNTED):
        if step == UNCOUNTED:
            group.sums([0.0])
            before = sum(interface_bytes().values())
        model.step(tokens[:, :-1], tokens[:, 1:])
    group.sums([0.0])
    sent = (sum(interface_bytes().values()) - before) / COUNTED / RANKS
    group.sums([0.0])  # no rank sends before each has read
    kept += tensor_bytes() - tokens.nbytes
    expected = strategies.sent_bytes(request, size)
    assert expected is not None
    states = strategies.state_bytes(request, size)
    return [sent, expected, group.sums([kept])[0] / RANKS, states]


def one_rank(rank: int, strategies: Sequence[str]) -> None:
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank))
    torch.set_num_threads(1)
    with joined("gloo", "cpu") as group:
        found = {strategy: counted(strategy, group) for strategy in strategies}
    if rank == 0:
        sys.stdout.write(json.dumps(found) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    os.environ.update({key: str(value) for key, value in meeting_point().items()})
    os.environ["WORLD_SIZE"] = str(RANKS)
    fork = cast("Callable[..., object]", start_processes)
    fork(one_rank, (sys.argv[1:],), nprocs=RANKS, start_method="fork")
