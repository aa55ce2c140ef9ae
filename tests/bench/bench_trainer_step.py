"""What the reference trainer adds to the step of a script by hand: events, order, accounting.

Both train a tiny CNN on one rank, in one process and in turns, so that other work on the machine
meets both. Printed are medians of CPU time in ms. Goal: 0.5 % of a step of 50 ms, 0.25 ms.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import torch
from torch.utils.data import DataLoader, DistributedSampler

from hpc_train.workload import train as program
from hpc_train.workload.process_group import RankGroup, joined
from hpc_train.workload.strategies import load_strategy
from hpc_train.workload.strategies.base import Setup
from hpc_train.workload.train import batch_of, training_request
from hpc_train.workload.trainer_options import parse_options
from hpc_train.workload.training_loop import Trainer
from tests.bench.hand_written import ddp, fsdp, network
from tests.workload.launching import meeting_point

STEPS, BATCH, WIDTH, ROUNDS = 40, 8, 4, 15
GOAL, STEP = 0.005, 50.0
Run = Callable[[], object]


def by_trainer(strategy: str, group: RankGroup) -> Run:
    """Return a call that trains with the reference trainer."""
    words = ["--global-batch-size", str(BATCH), "--steps", str(STEPS), "--strategy", strategy]
    options = parse_options([*words, "--data", "synthetic", "--width", str(WIDTH), "--no-accuracy"])
    request = training_request(options, 1, "cpu")
    batch = batch_of(options, request)
    train_set, _ = program._data(options)
    optimizer = replace(program._optimizer(options, 0.1), learning_rate=0.1)
    setup = Setup(group=group, request=request, optimizer=optimizer)
    model = load_strategy(strategy).build(program._maker(options, train_set), setup)
    return lambda: Trainer(options, group, train_set, batch, request).train(model)


def by_hand(strategy: str, group: RankGroup) -> Run:
    """Return a call that trains with the script."""
    data = network.dataset()
    sampler: DistributedSampler[object] = DistributedSampler(data)
    loader: DataLoader[object] = DataLoader(data, BATCH, sampler=sampler, drop_last=True)
    if strategy == "fsdp":
        model = fsdp.sharded(network.Net())
        return lambda: fsdp.train(model, loader, group.device, STEPS)
    trainer = ddp.Trainer(network.Net(), loader, group.device)

    def run() -> None:
        trainer.done = 0
        trainer.train(STEPS)

    return run


@contextmanager
def without_output() -> Iterator[None]:
    """Send the events, which the trainer writes to the descriptor, to /dev/null."""
    sys.stdout.flush()
    kept, nowhere = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    yield
    os.dup2(kept, 1)


def milliseconds(run: Run) -> float:
    """Return the CPU time of a step."""
    begun = time.process_time()
    run()
    return (time.process_time() - begun) * 1e3 / STEPS


def row(strategy: str, group: RankGroup) -> tuple[str, ...]:
    """Return the row of a strategy."""
    sides = (by_trainer(strategy, group), by_hand(strategy, group))
    found: list[tuple[float, float]] = []
    with without_output():
        for run in sides:  # the first steps of a process take longer
            run()
        for number in range(ROUNDS):
            turn = {at: milliseconds(sides[at]) for at in ((0, 1) if number % 2 else (1, 0))}
            found.append((turn[0], turn[1]))
    ours, theirs = (statistics.median(side) for side in zip(*found, strict=True))
    more = statistics.median(one - other for one, other in found)
    cells = (f"{ours:.2f}", f"{theirs:.2f}", f"{more:.2f}", f"{more / STEP:.2%}", f"{GOAL:.1%}")
    return (strategy, *cells)


def main() -> None:
    """Measure, and print a table."""
    place = {name: str(value) for name, value in meeting_point().items()}
    os.environ.update(RANK="0", LOCAL_RANK="0", WORLD_SIZE="1", **place)
    torch.set_num_threads(1)
    network.WIDTH = WIDTH
    heads = ("strategy", "trainer [ms]", "by hand [ms]", "more [ms]", "of 50 ms", "goal")
    with joined("gloo", "cpu") as group:
        rows = [row(strategy, group) for strategy in ("ddp", "fsdp")]
    print(f"{__doc__}\n{os.cpu_count()} cores, torch {torch.__version__}, n={ROUNDS}\n")
    for cells in (heads, ("---",) * len(heads), *rows):
        print(f"| {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
