"""Saves checkpoints with strategies on several ranks, and resumes them with others.

Arguments: "CASE > CASE" of `strategy_differences`, the one that saves and the one that resumes.
Prints one line of JSON for each number of ranks that resume, with two differences of each pair, the
largest over all ranks and parameters: from what was saved directly after it was loaded, and from
the training that saved at its end.
"""

import json
import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import torch
from torch import distributed
from torch.multiprocessing.spawn import start_processes

from hpc_train.trainer import checkpoint
from hpc_train.trainer.optimizer import parameter_type
from hpc_train.trainer.process_group import RankGroup, joined
from hpc_train.trainer.strategies import build as build_model
from hpc_train.trainer.strategies.base import ParallelModel
from tests.trainer import strategy_differences as training
from tests.trainer.launching import meeting_point

SAVED, STEPS = 2, 4


def build(case: str, group: RankGroup, seed: int) -> ParallelModel:
    setup = training.prepare(case, group)
    request = setup.request
    dtype = parameter_type(request.precision)
    return build_model(lambda: training.make(request.model, dtype, seed), setup)


def train(case: str, group: RankGroup, model: ParallelModel, steps: range) -> None:
    request = training.prepare(case, group).request
    batches = training.batches(request.model, parameter_type(request.precision))
    mine = slice(model.data_rank, None, request.data_size)
    for step in steps:
        model.step(*(values[mine].contiguous() for values in batches[step]))


def saves(case: str, group: RankGroup, folder: Path) -> None:
    """Save, and keep whole parameters at that step and at the last one."""
    model = build(case, group, seed=0)
    train(case, group, model, range(SAVED))
    checkpoint.save(SAVED, model.model, model.updates.optimizer)
    states = [model.state()]
    train(case, group, model, range(SAVED, STEPS))
    states.append(model.state())
    if group.rank == 0:
        torch.save(states, folder / "states")


def resumes(case: str, group: RankGroup, folder: Path) -> list[float]:
    model = build(case, group, seed=7)
    saved, last = torch.load(folder / "states", weights_only=True)
    assert training.furthest(model.state(), saved) > 1e-3, "it must begin with other parameters"
    assert checkpoint.resume(model.model, model.updates.optimizer) == SAVED
    model.updates.resume(SAVED, None)
    found = [training.furthest(model.state(), saved)]
    train(case, group, model, range(SAVED, STEPS))
    found.append(training.furthest(model.state(), last))
    most = torch.tensor(found, dtype=torch.float64)
    if distributed.is_initialized():
        distributed.all_reduce(most, distributed.ReduceOp.MAX)
    return [float(value) for value in most]


def one_rank(
    rank: int, size: int, action: Callable[..., Any], work: Sequence[tuple[str, str, Path]]
) -> None:
    if size > 1:
        os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(size))
    found = {}
    with joined("gloo", "cpu") as group:
        for name, case, folder in work:
            os.environ["HPCTRAIN_CHECKPOINTS"] = str(folder)
            found[name] = action(case, group, folder)
    if rank == 0 and action is resumes:
        sys.stdout.write(json.dumps(found) + "\n")
        sys.stdout.flush()


def on_ranks(action: Callable[..., Any], work: Sequence[tuple[str, str, Path]]) -> None:
    fork = cast("Callable[..., object]", start_processes)
    for ranks in sorted({int(case.split()[0]) for _, case, _ in work}):
        os.environ.update({key: str(value) for key, value in meeting_point().items()})
        some = [entry for entry in work if int(entry[1].split()[0]) == ranks]
        fork(one_rank, (ranks, action, some), nprocs=ranks, start_method="fork")


def main(pairs: Sequence[str]) -> None:
    torch.set_num_threads(1)
    training.STEPS = STEPS
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as root:
        savers = sorted({pair.split(" > ")[0] for pair in pairs})
        folders = {case: Path(root, str(number)) for number, case in enumerate(savers)}
        for folder in folders.values():
            folder.mkdir()
        on_ranks(saves, [(case, case, folder) for case, folder in folders.items()])
        sides = [(pair, *pair.split(" > ")) for pair in pairs]
        on_ranks(resumes, [(pair, second, folders[first]) for pair, first, second in sides])


if __name__ == "__main__":
    main(sys.argv[1:])
