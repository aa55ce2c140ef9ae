"""What a checkpoint stores: parameters and optimiser by their names, and the values of each rank.

The names do not depend on the strategy. A rank stores the layers, shards or optimiser state that it
has; the rank that reads a part finds it in the files of any ranks.
"""

from __future__ import annotations

import pickle
import random
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import distributed, nn
from torch.distributed.checkpoint import state_dict_loader
from torch.distributed.checkpoint.filesystem import FileSystemReader
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict

State = dict[str, Any]
Shapes = dict[str, tuple[int, ...]]


class CheckpointError(Exception):
    """A checkpoint cannot be written or read, or belongs to another training."""


def training_state(model: nn.Module, optimizer: torch.optim.Optimizer) -> State:
    """Return the parameters of this rank, and the optimiser state that it keeps, by name.

    The groups of the optimiser are stored without the names of their parameters, because a rank
    may have some of them only.
    """
    weights, moments = get_state_dict(_inside(model), _local(optimizer))
    groups: Any = moments["param_groups"]
    for group in groups:
        del group["params"]
    return {"model": weights, "optimizer": moments}


def load_training(
    folder: Path, model: nn.Module, optimizer: torch.optim.Optimizer, values: State
) -> None:
    """Load both in place, and fill `values`; every rank must call it.

    Raises:
        CheckpointError: they are of another model or optimiser; the first difference is named.
    """
    weights, moments = get_state_dict(_inside(model), _local(optimizer))
    groups: Any = moments["param_groups"]
    names = [group.pop("params") for group in groups]
    _check_same(folder, {"model": weights, "optimizer": moments})
    state = {"model": weights, "optimizer": moments, **values}
    # Values that are no tensors are replaced in `state`, not in place.
    state_dict_loader.load(state, checkpoint_id=folder, no_dist=not distributed.is_initialized())
    for group, params in zip(state["optimizer"]["param_groups"], names, strict=True):
        group["params"] = params
    set_state_dict(
        _inside(model),
        _local(optimizer),
        model_state_dict=state["model"],
        optim_state_dict=state["optimizer"],
    )
    local = _local(optimizer)
    if local is not optimizer:  # ZeRO gives its groups to the local one in each step
        for outer, inner in zip(optimizer.param_groups, local.param_groups, strict=True):
            outer.update({key: value for key, value in inner.items() if key != "params"})


def _inside(model: nn.Module) -> nn.Module:
    """Return the module whose names a checkpoint has; torch itself unwraps the others."""
    return model.module if isinstance(model, nn.DataParallel) else model


def _local(optimizer: torch.optim.Optimizer) -> torch.optim.Optimizer:
    """Return the optimiser whose state this rank keeps: of a part of the parameters with ZeRO."""
    # Whoever has one has imported its module, which takes long and warns of torch.jit.
    module = sys.modules.get("torch.distributed.optim.zero_redundancy_optimizer")
    if module is not None and isinstance(optimizer, module.ZeroRedundancyOptimizer):
        inner: torch.optim.Optimizer = optimizer.optim
        return inner
    return optimizer


def _check_same(folder: Path, state: State) -> None:
    """Compare names and shapes of all ranks with those in a checkpoint."""
    stored = FileSystemReader(folder).read_metadata().state_dict_metadata
    values = state["optimizer"]["state"].items()
    moments = {f"{name}.{key}": v for name, found in values for key, v in found.items()}
    for kind, prefix, mine in (
        ("model", "model.", state["model"]),
        ("optimiser", "optimizer.state.", moments),
    ):
        here = _of_all_ranks({name: tuple(getattr(v, "shape", ())) for name, v in mine.items()})
        there = {
            name.removeprefix(prefix): tuple(getattr(entry, "size", ()))
            for name, entry in stored.items()
            if name.startswith(prefix)
        }
        _raise_at_first(f"{folder}: of another {kind}", there, here)


def _raise_at_first(text: str, there: Shapes, here: Shapes) -> None:
    for name in sorted(there.keys() | here.keys()):
        if there.get(name) != here.get(name):
            first, second = (str(list(s[name])) if name in s else "absent" for s in (there, here))
            raise CheckpointError(f"{text}: {name} is {first} there, {second} here")


def _of_all_ranks(mine: Shapes) -> Shapes:
    if not distributed.is_initialized():
        return mine
    parts: list[Any] = [None] * distributed.get_world_size()
    distributed.all_gather_object(parts, mine)
    return {name: shape for part in parts for name, shape in part.items()}


def rank_values(own: Mapping[str, Any] | None) -> State:
    """Return the generators of random numbers of this rank, and `own`."""
    generators: State = {"cpu": torch.get_rng_state(), "python": random.getstate()}
    if torch.cuda.is_available():
        generators["cuda"] = torch.cuda.get_rng_state()
    # As one value, because only entries that exist before are loaded.
    return {**generators, "own": pickle.dumps(dict(own or {}))}


def restore_rank(state: Mapping[str, Any], own: State | None) -> None:
    """Set the generators, and fill `own`."""
    torch.set_rng_state(state["cpu"])
    random.setstate(state["python"])
    if "cuda" in state:
        torch.cuda.set_rng_state(state["cuda"])
    if own is not None:
        own.update(pickle.loads(state["own"]))  # noqa: S301  # written by this program
