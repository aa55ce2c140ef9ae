"""Checkpoints that a training resumes from: saved, resumed; and the request of the job to stop."""

from __future__ import annotations

import os
import pickle
import shutil
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from torch import distributed, nn
from torch.distributed.checkpoint import state_dict_loader
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.filesystem import FileSystemReader

from hpc_train.atomicfile import write_atomic
from hpc_train.workload.checkpoint_files import damage
from hpc_train.workload.checkpoint_state import CheckpointError as CheckpointError
from hpc_train.workload.checkpoint_state import (
    load_training,
    rank_values,
    restore_rank,
    training_state,
)
from hpc_train.workload.checkpoint_writing import (
    DONE,
    BackgroundWrite,
    CheckpointFolder,
    can_write_beside,
    cause,
    copied,
    ignore_warning_of_one_process,
    made,
    put_back,
    together,
    whole,
    write,
)
from hpc_train.workload.process_group import any_rank, rank_and_count
from hpc_train.workload.stop_request import keep_worker as keep_worker
from hpc_train.workload.stop_request import listen
from hpc_train.workload.stop_request import should_stop as should_stop
from hpc_train.workload.stop_request import stop_or_due as stop_or_due

RESUBMIT = 75
"""Exit code of a program that saved its state and has more to do (EX_TEMPFAIL of sysexits.h)."""
FOLDER = "HPCTRAIN_CHECKPOINTS"
_background = BackgroundWrite()


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
    this rank, such as the state of a scheduler or a position. The model may be a part of one, as a
    stage of a pipeline, if its parameters have their names in the whole model. A checkpoint is
    whole or absent: it is written under another name, synced and renamed. The last `keep` remain.

    Raises:
        CheckpointError: it cannot be written; the earlier ones remain.
    """
    folder = _next_folder(step, keep)
    write(folder, together(folder.final, lambda: _state(model, optimizer, own)))
    return folder.final


def async_save(
    step: int,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    own: Mapping[str, Any] | None = None,
    *,
    keep: int = 2,
) -> Path:
    """Do as `save`, but return as soon as the state is copied in the memory of the host.

    A thread writes the copy. It prints a failure, which `finish` raises; the next save waits for
    its end. With the backend mpi it is `save`.

    Raises:
        CheckpointError: the state cannot be copied.
    """
    if not can_write_beside():
        return save(step, model, optimizer, own, keep=keep)
    folder = _next_folder(step, keep)
    state = together(folder.final, lambda: copied(_state(model, optimizer, own)))
    _background.start(folder, state)
    return folder.final


def _next_folder(step: int, keep: int) -> CheckpointFolder:
    """Return the folder of a checkpoint, when the one before is written."""
    _background.wait()
    final = checkpoints_folder() / f"{DONE}{step:010d}"
    return CheckpointFolder(final=final, step=step, keep=keep)


def finish() -> None:
    """Wait until a checkpoint that is under way is written; call it before the program ends.

    Raises:
        CheckpointError: it could not be written.
    """
    _background.finish()


def resume(
    model: nn.Module, optimizer: torch.optim.Optimizer, own: dict[str, Any] | None = None
) -> int:
    """Load the newest whole checkpoint in place; return its step, 0 without one.

    `own` is filled with the values that this rank saved. A damaged checkpoint is named on stderr,
    renamed to `NAME.damaged` and left out. With another number of ranks, `own` and the generators
    stay as they are.

    Raises:
        CheckpointError: it is of another model or optimiser; the first name that differs is given.
    """
    listen()
    if checkpoints_folder().exists():
        made.add(checkpoints_folder())
    for folder in _newest_first():
        found = damage(folder, *rank_and_count())
        if not any_rank(bool(found)):
            _load(folder, model, optimizer, own)
            step = int(folder.name.removeprefix(DONE))
            _note_resume(step, folder.stat().st_mtime)
            return step
        if found:
            print(f"checkpoint {folder} is damaged and left out: {found}", file=sys.stderr)
        _put_aside(folder)
    _note_resume(0)
    return 0


def _newest_first() -> list[Path]:
    """Return the checkpoints that rank 0 sees: on other nodes a shared folder may be out of date.

    Ranks that load different ones would go on with different parameters.
    """
    if rank_and_count()[0] == 0:
        put_back(checkpoints_folder())
    names = [sorted((path.name for path in whole(checkpoints_folder())), reverse=True)]
    if distributed.is_initialized():
        distributed.broadcast_object_list(names, 0)
    return [checkpoints_folder() / name for name in names[0]]


def _put_aside(folder: Path) -> None:
    """Rename a damaged checkpoint: as the newest it would be kept in place of those that follow."""
    aside = folder.with_name(f"{folder.name}.damaged")
    if rank_and_count()[0] == 0:
        shutil.rmtree(aside, ignore_errors=True)
        with suppress(OSError):
            folder.rename(aside)


def _note_resume(step: int, saved: float | None = None) -> None:
    """Leave time and step of the resume for the script of the job, which knows the other times.

    `step` is corrected: what is saved after a damaged checkpoint is progress, if its step is lower.
    """
    folder = checkpoints_folder()
    if rank_and_count()[0] != 0 or not os.environ.get(FOLDER) or not folder.exists():
        return
    noted, text = folder / "step", f"{step}\n"
    with suppress(OSError):
        write_atomic(folder / "resumed", (f"{step} {saved}\n" if saved else text).encode())
        if saved is None:
            noted.unlink(missing_ok=True)
        elif not noted.exists() or noted.read_text() != text:
            write_atomic(noted, text.encode())
            os.utime(noted, (saved, saved))


def saved_values(step: int) -> dict[str, Any]:
    """Return what rank 0 gave as `own` to the checkpoint of a step."""
    state: dict[str, Any] = {"rank0": {"own": b""}}
    ignore_warning_of_one_process()
    folder = checkpoints_folder() / f"{DONE}{step:010d}"
    state_dict_loader.load(state, checkpoint_id=folder, no_dist=True)
    values: dict[str, Any] = pickle.loads(state["rank0"]["own"])  # noqa: S301  # of this program
    return values


def _load(
    folder: Path, model: nn.Module, optimizer: torch.optim.Optimizer, own: dict[str, Any] | None
) -> None:
    stored = FileSystemReader(folder).read_metadata().state_dict_metadata
    saved_by = sum(1 for name in stored if name.startswith("rank") and name.endswith(".cpu"))
    rank, ranks = rank_and_count()
    values = {f"rank{rank}": rank_values(own)} if saved_by == ranks else {}
    if not values and rank == 0:
        text = f"checkpoint {folder} of {saved_by} ranks is resumed by {ranks}"
        print(f"{text}: parameters and optimiser, not the values of a rank", file=sys.stderr)
    if ranks == 1:
        ignore_warning_of_one_process()
    try:
        load_training(folder, model, optimizer, values)
    except CheckpointException as error:
        raise CheckpointError(f"{folder}: not read: {cause(error)}") from error
    for state in values.values():
        restore_rank(state, own)


def _state(
    model: nn.Module, optimizer: torch.optim.Optimizer, own: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Return what a checkpoint has of this rank."""
    return {
        **training_state(model, optimizer),
        f"rank{rank_and_count()[0]}": rank_values(own),
    }
