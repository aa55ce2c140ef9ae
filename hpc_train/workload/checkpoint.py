"""Checkpoints that a training resumes from: `save`, `resume`, and `should_stop` of its job."""

from __future__ import annotations

import os
import pickle
import random
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import distributed, nn
from torch.distributed.checkpoint import state_dict_loader, state_dict_saver
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.filesystem import FileSystemReader
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict

from hpc_train.atomicfile import write_atomic
from hpc_train.workload import hang_watch
from hpc_train.workload.checkpoint_files import damage, sync, write_sums
from hpc_train.workload.process_group import any_rank, rank_and_count
from hpc_train.workload.stop_request import listen
from hpc_train.workload.stop_request import should_stop as should_stop

RESUBMIT = 75
"""Exit code of a program that saved its state and has more to do (EX_TEMPFAIL of sysexits.h)."""
FOLDER = "HPCTRAIN_CHECKPOINTS"
_DONE, _NEW = "step-", ".new"
_made: set[Path] = set()


class CheckpointError(Exception):
    """A checkpoint cannot be written, or belongs to another training."""


def checkpoints_folder() -> Path:
    """Return $HPCTRAIN_CHECKPOINTS, which the job sets; else `checkpoints` here."""
    return Path(os.environ.get(FOLDER) or "checkpoints")


def save(
    step: int,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    own: Mapping[str, Any] | None = None,
    *,
    keep: int = 2,
) -> Path:
    """Write the state after `step` steps; every rank must call it. Return the folder.

    Saved are model, optimiser, the generators of random numbers of each rank, and `own`: values of
    this rank, such as the state of a scheduler or a position. A checkpoint is whole or absent: it
    is written under another name, synced and renamed. The last `keep` remain.

    Raises:
        CheckpointError: it cannot be written; the earlier ones remain.
    """
    final = checkpoints_folder() / f"{_DONE}{step:010d}"
    new = final.with_name(final.name + _NEW)
    _together(final, _empty, new)
    _together(final, _write, new, model, optimizer, own)
    _together(final, _publish, new, final, step, keep)
    hang_watch.progress()
    return final


def _together(final: Path, action: Callable[..., None], *arguments: Any) -> None:
    """Do a part of a checkpoint on every rank; if one fails, all raise."""
    failure = ""
    try:
        action(*arguments)
    except (OSError, RuntimeError, ValueError, CheckpointException) as error:
        failure = _cause(error)
    if any_rank(bool(failure)):
        if rank_and_count()[0] == 0:
            _remove_unfinished(final.parent)
        raise CheckpointError(f"{final}: not written: {failure or 'another rank failed'}")


def resume(
    model: nn.Module, optimizer: torch.optim.Optimizer, own: dict[str, Any] | None = None
) -> int:
    """Load the newest whole checkpoint in place; return its step, 0 without one.

    `own` is filled with the values that this rank saved. A damaged checkpoint is named on stderr
    and left out. With another number of ranks, `own` and the generators stay as they are.

    Raises:
        CheckpointError: the checkpoint is of another model; the first name that differs is given.
    """
    listen()
    if checkpoints_folder().exists():
        _made.add(checkpoints_folder())
    for folder in sorted(checkpoints_folder().glob(f"{_DONE}*[0-9]"), reverse=True):
        found = damage(folder, *rank_and_count())
        if not any_rank(bool(found)):
            _load(folder, model, optimizer, own)
            return int(folder.name.removeprefix(_DONE))
        if found:
            print(f"checkpoint {folder} is damaged and left out: {found}", file=sys.stderr)
    return 0


def ranks_of(step: int) -> int:
    """Return the number of ranks that saved the checkpoint of a step."""
    folder = checkpoints_folder() / f"{_DONE}{step:010d}"
    return _ranks(FileSystemReader(folder).read_metadata().state_dict_metadata)


def _ranks(stored: Mapping[str, Any]) -> int:
    return sum(1 for name in stored if name.startswith("rank") and name.endswith(".cpu"))


def _load(
    folder: Path, model: nn.Module, optimizer: torch.optim.Optimizer, own: dict[str, Any] | None
) -> None:
    weights, moments = get_state_dict(model, optimizer)
    state: dict[str, Any] = {"model": weights, "optimizer": moments}
    stored = FileSystemReader(folder).read_metadata().state_dict_metadata
    _check_same_model(folder, weights, stored)
    (rank, ranks), saved_by = rank_and_count(), _ranks(stored)
    mine = f"rank{rank}"
    if saved_by == ranks:
        state[mine] = _of_rank(own)
    elif rank == 0:
        text = f"checkpoint {folder} of {saved_by} ranks is resumed by {ranks}"
        print(f"{text}: parameters and optimiser, not the values of a rank", file=sys.stderr)
    alone = not distributed.is_initialized()
    with _without_warning():
        state_dict_loader.load(state, checkpoint_id=folder, no_dist=alone)
    set_state_dict(
        model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"]
    )
    if mine in state:
        _restore(state[mine], own)


def _check_same_model(folder: Path, weights: Mapping[str, Any], stored: Mapping[str, Any]) -> None:
    """Compare names and shapes of the parameters."""
    saved = {
        name.removeprefix("model."): tuple(getattr(entry, "size", ()))
        for name, entry in stored.items()
        if name.startswith("model.")
    }
    mine = {name: tuple(getattr(value, "shape", ())) for name, value in weights.items()}
    for name in sorted(saved.keys() | mine.keys()):
        if saved.get(name) != mine.get(name):
            shapes = [str(list(s[name])) if name in s else "absent" for s in (saved, mine)]
            raise CheckpointError(
                f"{folder}: of another model: {name} is {shapes[0]} there, {shapes[1]} here"
            )


def _of_rank(own: Mapping[str, Any] | None) -> dict[str, Any]:
    generators: dict[str, Any] = {"cpu": torch.get_rng_state(), "python": random.getstate()}
    if torch.cuda.is_available():
        generators["cuda"] = torch.cuda.get_rng_state()
    # As one value, because only entries that exist before are loaded.
    return {**generators, "own": pickle.dumps(dict(own or {}))}


def _restore(state: Mapping[str, Any], own: dict[str, Any] | None) -> None:
    torch.set_rng_state(state["cpu"])
    random.setstate(state["python"])
    if "cuda" in state:
        torch.cuda.set_rng_state(state["cuda"])
    if own is not None:
        own.update(pickle.loads(state["own"]))  # noqa: S301  # written by this program


def _empty(new: Path) -> None:
    if rank_and_count()[0] == 0:
        shutil.rmtree(new, ignore_errors=True)
        # Made once only: where a file system is gone for a while, its folders would hide it later.
        new.mkdir(parents=new.parent not in _made)
        _made.add(new.parent)


def _write(
    new: Path, model: nn.Module, optimizer: torch.optim.Optimizer, own: Mapping[str, Any] | None
) -> None:
    weights, moments = get_state_dict(model, optimizer)
    state = {"model": weights, "optimizer": moments, f"rank{rank_and_count()[0]}": _of_rank(own)}
    with _without_warning():
        state_dict_saver.save(state, checkpoint_id=new, no_dist=not distributed.is_initialized())
    write_sums(new, *rank_and_count())


@contextmanager
def _without_warning() -> Iterator[None]:
    """A single process is what is meant here; torch warns of it all the same."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="torch.distributed is disabled")
        yield


def _publish(new: Path, final: Path, step: int, keep: int) -> None:
    """Give a whole checkpoint its name, note its step, and remove the older ones."""
    if rank_and_count()[0] != 0:
        return
    sync(new)
    shutil.rmtree(final, ignore_errors=True)
    new.rename(final)
    write_atomic(final.with_name("step"), f"{step}\n".encode())
    sync(final.parent)
    whole = sorted(final.parent.glob(f"{_DONE}*[0-9]"), reverse=True)
    for old in whole[keep:]:
        shutil.rmtree(old, ignore_errors=True)
    _remove_unfinished(final.parent)


def _remove_unfinished(folder: Path) -> None:
    """A disk may be full of them."""
    for new in folder.glob(f"{_DONE}*{_NEW}"):
        shutil.rmtree(new, ignore_errors=True)


def _cause(error: BaseException) -> str:
    """Return the message; torch's exception has those of all ranks."""
    if isinstance(error, CheckpointException) and error.failures:
        error = next(iter(error.failures.values()))[0]
    return str(error).strip().splitlines()[-1] if str(error).strip() else type(error).__name__
