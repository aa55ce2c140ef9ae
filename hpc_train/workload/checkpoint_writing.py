"""Writes a checkpoint of all ranks, whole or absent: at once, or in a thread beside the training.

The thread writes a copy of the state, and has a process group of its own: collectives of two
threads in one group would be taken for one another.
"""

from __future__ import annotations

import copy
import shutil
import threading
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import distributed
from torch.distributed import ProcessGroup
from torch.distributed.checkpoint import state_dict_saver
from torch.distributed.checkpoint.api import CheckpointException

from hpc_train.atomicfile import write_atomic
from hpc_train.workload.checkpoint_files import sync, write_sums
from hpc_train.workload.checkpoint_state import CheckpointError, State
from hpc_train.workload.emit import write_line
from hpc_train.workload.process_group import any_rank, rank_and_count

DONE, NEW, BEFORE = "step-", ".new", ".before"
made: set[Path] = set()
"""Folders of checkpoints that have existed in this process."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointFolder:
    """Where the state after `step` steps goes; the last `keep` checkpoints remain."""

    final: Path
    step: int
    keep: int

    @property
    def new(self) -> Path:
        """Its name while it is written."""
        return self.final.with_name(self.final.name + NEW)


def write(folder: CheckpointFolder, state: State, group: ProcessGroup | None = None) -> None:
    """Write the state of this rank; every rank of the group must call it.

    Raises:
        CheckpointError: it cannot be written; the earlier ones remain.
    """
    together(folder.final, lambda: _empty(folder.new), group)
    together(folder.final, lambda: _write(folder.new, state, group), group)
    together(folder.final, lambda: _publish(folder), group)


def together(final: Path, action: Callable[[], T], group: ProcessGroup | None = None) -> T:
    """Do a part of a checkpoint on every rank; if one fails, all raise."""
    failure, value = "", None
    try:
        value = action()
    except (OSError, RuntimeError, ValueError, CheckpointException) as error:
        failure = cause(error)
    if any_rank(bool(failure), group):
        if rank_and_count()[0] == 0:
            _remove_unfinished(final.parent)
        raise CheckpointError(f"{final}: not written: {_first_failure(failure, group)}")
    return value  # type: ignore[return-value]  # it did not fail


def _first_failure(mine: str, group: ProcessGroup | None) -> str:
    """Return the failure of the lowest rank that has one: rank 0 prints it for all."""
    if not distributed.is_initialized():
        return mine
    failures = [""] * distributed.get_world_size(group)
    distributed.all_gather_object(failures, mine, group=group)
    return next(filter(None, failures))


class BackgroundWrite:
    """The write that is under way beside the training, if any: one for each process."""

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._failure: CheckpointError | None = None
        self._groups: dict[ProcessGroup | None, ProcessGroup | None] = {}

    def start(self, folder: CheckpointFolder, state: State) -> None:
        """Write a state that nothing changes any more; every rank must call it."""
        self.wait()
        world = distributed.group.WORLD if distributed.is_initialized() else None
        if world not in self._groups:
            self._groups = {world: world and distributed.new_group(backend="gloo")}
        # An interpreter that ends after an error does not wait for ranks that have ended.
        self._thread = threading.Thread(
            target=self._run, args=(folder, state, self._groups[world]), daemon=True
        )
        self._thread.start()

    def wait(self) -> None:
        """Wait for its end; a failure is kept."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def finish(self) -> None:
        """Wait for its end.

        Raises:
            CheckpointError: it failed.
        """
        self.wait()
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def _run(self, folder: CheckpointFolder, state: State, group: ProcessGroup | None) -> None:
        self._failure = None
        try:
            write(folder, state, group)
        except CheckpointError as error:
            self._failure = error
        except RuntimeError as error:  # a rank has ended
            self._failure = CheckpointError(f"{folder.final}: not written: {cause(error)}")
        if self._failure is not None and rank_and_count()[0] == 0:
            write_line(f"no checkpoint: {self._failure}")


def can_write_beside() -> bool:
    """Whether the ranks can have a second group: MPI's have no store to make it with."""
    return not distributed.is_initialized() or "mpi" not in distributed.get_backend()


def copied(value: Any) -> Any:
    """Return a copy of a state in the memory of the host; shards stay shards."""
    if isinstance(value, torch.Tensor):
        return value.detach().to("cpu", copy=True)
    if isinstance(value, Mapping):
        return {key: copied(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(copied(item) for item in value)
    return copy.deepcopy(value)


def _empty(new: Path) -> None:
    if rank_and_count()[0] == 0:
        shutil.rmtree(new, ignore_errors=True)
        # Made once only: where a file system is gone for a while, its folders would hide it later.
        new.mkdir(parents=new.parent not in made)
        made.add(new.parent)


def _write(new: Path, state: State, group: ProcessGroup | None) -> None:
    alone = not distributed.is_initialized()
    if alone:
        ignore_warning_of_one_process()
    state_dict_saver.save(state, checkpoint_id=new, process_group=group, no_dist=alone)
    if not (new / ".metadata").exists():
        raise OSError("this node does not see what rank 0 wrote: all nodes must share the folder")
    write_sums(new, *rank_and_count())


def ignore_warning_of_one_process() -> None:
    """A single process is what is meant here; torch warns of it all the same.

    For good, because `warnings.catch_warnings` is not for threads.
    """
    warnings.filterwarnings("ignore", message="torch.distributed is disabled")


def _publish(folder: CheckpointFolder) -> None:
    """Give a whole checkpoint its name, note its step, and remove the older ones."""
    if rank_and_count()[0] != 0:
        return
    final = folder.final
    sync(folder.new)
    # The one of this step, if there is one, is put aside: `resume` finds it there.
    if final.exists():
        before = final.with_name(final.name + BEFORE)
        shutil.rmtree(before, ignore_errors=True)
        final.rename(before)
    folder.new.rename(final)
    write_atomic(final.with_name("step"), f"{folder.step}\n".encode())
    sync(final.parent)
    _remove_unfinished(final.parent)
    for old in sorted(whole(final.parent), reverse=True)[folder.keep :]:
        shutil.rmtree(old, ignore_errors=True)


def whole(folder: Path) -> list[Path]:
    """Return the checkpoints that were written to the end."""
    return list(folder.glob(f"{DONE}*[0-9]"))


def put_back(folder: Path) -> None:
    """Give a checkpoint its name again that was put aside for another, which did not follow."""
    for before in folder.glob(f"{DONE}*{BEFORE}"):
        if not before.with_suffix("").exists():
            with suppress(OSError):
                before.rename(before.with_suffix(""))


def _remove_unfinished(folder: Path) -> None:
    """A disk may be full of them."""
    put_back(folder)
    for mark in (NEW, BEFORE):
        for path in folder.glob(f"{DONE}*{mark}"):
            shutil.rmtree(path, ignore_errors=True)


def cause(error: BaseException) -> str:
    """Return the message; torch's exception has those of all ranks."""
    if isinstance(error, CheckpointException) and error.failures:
        error = next(iter(error.failures.values()))[0]
    return str(error).strip().splitlines()[-1] if str(error).strip() else type(error).__name__
