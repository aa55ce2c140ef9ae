"""Rank 1 is late for a sum: rank 0 waits for it, then computes meanwhile; prints both."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable

import torch
from torch import Tensor, distributed
from torch.distributed._functional_collectives import all_reduce

from hpc_train.trainer.measurements import ExposedCommunication

# Long beside the start of a profiler, which delays one rank more than the other.
LATE_S = 3.0


def sleep(_: Tensor) -> None:
    """Sleep."""
    time.sleep(LATE_S)


def compute(values: Tensor) -> None:
    """Multiply for as long."""
    end = time.perf_counter() + LATE_S
    while time.perf_counter() < end:
        torch.mm(values, values)


def exposed_s(rank: int, meanwhile: Callable[[Tensor], None]) -> float:
    """Return how long this rank only waited [s]; rank 0 starts the sum and does something."""
    exposed = ExposedCommunication(1, torch.device("cpu"))
    values = torch.full((512, 512), 1e-3)
    for number in (1, 2, 3):
        distributed.barrier()
        with exposed.step(number):
            started = time.perf_counter()
            if rank:
                time.sleep(LATE_S)
            total = all_reduce(torch.ones(4), "sum", [0, 1])
            if not rank:
                meanwhile(values)
            total.add(1)  # waits inside of the operation
            seconds = time.perf_counter() - started
    return (exposed.share() or 0.0) * seconds


def main() -> None:
    """Measure both."""
    distributed.init_process_group("gloo")
    rank = distributed.get_rank()
    with torch.profiler.profile():  # the first start takes longer
        pass
    found = {"waits": exposed_s(rank, sleep), "computes": exposed_s(rank, compute)}
    if not rank:
        sys.stdout.write(json.dumps(found) + "\n")
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
