"""Checkpoints that a training resumes from: saved, resumed; and the request of the job to stop.

They are written whole or absent, at once or in a thread beside the training. The thread writes a
copy of the state, and has a process group of its own: collectives of two threads in one group would
be taken for one another.

The names in a checkpoint do not depend on the strategy. A rank stores the layers, shards or
optimiser state that it has; the rank that reads a part finds it in the files of any ranks.
"""

import copy
import os
import pickle
import random
import shutil
import sys
import threading
import warnings
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import distributed, nn
from torch.distributed import ProcessGroup
from torch.distributed.checkpoint import state_dict_loader, state_dict_saver
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.filesystem import FileSystemReader
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict

from hpc_train.base.files import write_atomic
from hpc_train.trainer.emit import write_line
from hpc_train.trainer.process_group import any_rank, of_rank_0, of_ranks, rank_and_count
from hpc_train.trainer.stop_request import (
    keep_worker as keep_worker,
    listen,
    should_stop as should_stop,
    stop_or_due as stop_or_due,
)

RESUBMIT = 75
"""Exit code of a program that saved its state and has more to do (EX_TEMPFAIL of sysexits.h)."""
FOLDER = "HPCTRAIN_CHECKPOINTS"
DONE, NEW, BEFORE = "step-", ".new", ".before"
_SUMS, _BLOCK = ".crc32", 1 << 20
_made: set[Path] = set()
"""Folders of checkpoints that have existed in this process."""
State = dict[str, Any]
T = TypeVar("T")


class CheckpointError(Exception):
    """A checkpoint cannot be written or read, or belongs to another training."""


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
    final = _next_folder(step)
    _write(final, keep, _together(final, lambda: _state(model, optimizer, own)))
    return final


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
    # The ranks of MPI cannot have a second group: they have no store to make it with.
    if distributed.is_initialized() and "mpi" in distributed.get_backend():
        return save(step, model, optimizer, own, keep=keep)
    final = _next_folder(step)
    _background.start(final, keep, _together(final, lambda: _copied(_state(model, optimizer, own))))
    return final


def _next_folder(step: int) -> Path:
    """Return the folder of a checkpoint, when the one before is written."""
    _background.wait()
    return checkpoints_folder() / f"{DONE}{step:010d}"


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
        _made.add(checkpoints_folder())
    if rank_and_count()[0] == 0:
        _put_back(checkpoints_folder())
    names = sorted((path.name for path in _whole(checkpoints_folder())), reverse=True)
    # On other nodes a shared folder may be out of date, and all must load the same one.
    for folder in (checkpoints_folder() / name for name in of_rank_0(names)):
        found = damage(folder, *rank_and_count())
        if not any_rank(bool(found)):
            _load(folder, model, optimizer, own)
            step = int(folder.name.removeprefix(DONE))
            _note_resume(step, folder.stat().st_mtime)
            return step
        if found:
            print(f"checkpoint {folder} is damaged and left out: {found}", file=sys.stderr)
        # As the newest it would be kept in place of those that follow.
        aside = folder.with_name(f"{folder.name}.damaged")
        if rank_and_count()[0] == 0:
            shutil.rmtree(aside, ignore_errors=True)
            with suppress(OSError):
                folder.rename(aside)
    _note_resume(0)
    return 0


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
    values = {f"rank{rank}": _rank_values(own)} if saved_by == ranks else {}
    if not values and rank == 0:
        text = f"checkpoint {folder} of {saved_by} ranks is resumed by {ranks}"
        print(f"{text}: parameters and optimiser, not the values of a rank", file=sys.stderr)
    if ranks == 1:
        ignore_warning_of_one_process()
    try:
        _load_training(folder, model, optimizer, values)
    except CheckpointException as error:
        raise CheckpointError(f"{folder}: not read: {_cause(error)}") from error
    for state in values.values():
        torch.set_rng_state(state["cpu"])
        random.setstate(state["python"])
        if "cuda" in state:
            torch.cuda.set_rng_state(state["cuda"])
        if own is not None:
            own.update(pickle.loads(state["own"]))  # noqa: S301  # written by this program


def _state(
    model: nn.Module, optimizer: torch.optim.Optimizer, own: Mapping[str, Any] | None
) -> State:
    """Return what a checkpoint has of this rank.

    The groups of the optimiser are stored without the names of their parameters, because a rank
    may have some of them only.
    """
    weights, moments = get_state_dict(_inside(model), _local(optimizer))
    groups: Any = moments["param_groups"]
    for group in groups:
        del group["params"]
    values = {f"rank{rank_and_count()[0]}": _rank_values(own)}
    return {"model": weights, "optimizer": moments, **values}


def _load_training(
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
        shapes = {name: tuple(getattr(v, "shape", ())) for name, v in mine.items()}
        here = {name: shape for part in of_ranks(shapes) for name, shape in part.items()}
        there = {
            name.removeprefix(prefix): tuple(getattr(entry, "size", ()))
            for name, entry in stored.items()
            if name.startswith(prefix)
        }
        for name in sorted(there.keys() | here.keys()):
            if there.get(name) != here.get(name):
                words = [str(list(s[name])) if name in s else "absent" for s in (there, here)]
                raise CheckpointError(
                    f"{folder}: of another {kind}: {name} is {words[0]} there, {words[1]} here"
                )


def _rank_values(own: Mapping[str, Any] | None) -> State:
    """Return the generators of random numbers of this rank, and `own`."""
    generators: State = {"cpu": torch.get_rng_state(), "python": random.getstate()}
    if torch.cuda.is_available():
        generators["cuda"] = torch.cuda.get_rng_state()
    # As one value, because only entries that exist before are loaded.
    return {**generators, "own": pickle.dumps(dict(own or {}))}


def _write(final: Path, keep: int, state: State, group: ProcessGroup | None = None) -> None:
    """Write the state of this rank; every rank of the group must call it.

    Raises:
        CheckpointError: it cannot be written; the earlier ones remain.
    """
    new = final.with_name(final.name + NEW)
    _together(final, lambda: _empty(new), group)
    _together(final, lambda: _write_files(new, state, group), group)
    _together(final, lambda: _publish(new, final, keep), group)


def _together(final: Path, action: Callable[[], T], group: ProcessGroup | None = None) -> T:
    """Do a part of a checkpoint on every rank; if one fails, all raise."""
    failure, value = "", None
    try:
        value = action()
    except (OSError, RuntimeError, ValueError, CheckpointException) as error:
        failure = _cause(error)
    if any_rank(bool(failure), group):
        if rank_and_count()[0] == 0:
            _remove_unfinished(final.parent)
        # That of the lowest rank which has one: rank 0 prints it for all.
        first = next(filter(None, of_ranks(failure, group)))
        raise CheckpointError(f"{final}: not written: {first}")
    return value  # type: ignore[return-value]  # it did not fail


class BackgroundWrite:
    """The write that is under way beside the training, if any: one for each process."""

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._failure: CheckpointError | None = None
        self._groups: dict[ProcessGroup | None, ProcessGroup | None] = {}

    def start(self, final: Path, keep: int, state: State) -> None:
        """Write a state that nothing changes any more; every rank must call it."""
        self.wait()
        world = distributed.group.WORLD if distributed.is_initialized() else None
        if world not in self._groups:
            self._groups = {world: world and distributed.new_group(backend="gloo")}
        # An interpreter that ends after an error does not wait for ranks that have ended.
        self._thread = threading.Thread(
            target=self._run, args=(final, keep, state, self._groups[world]), daemon=True
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

    def _run(self, final: Path, keep: int, state: State, group: ProcessGroup | None) -> None:
        self._failure = None
        try:
            _write(final, keep, state, group)
        except CheckpointError as error:
            self._failure = error
        except RuntimeError as error:  # a rank has ended
            self._failure = CheckpointError(f"{final}: not written: {_cause(error)}")
        if self._failure is not None and rank_and_count()[0] == 0:
            write_line(f"no checkpoint: {self._failure}")


_background = BackgroundWrite()


def _copied(value: Any) -> Any:
    """Return a copy of a state in the memory of the host; shards stay shards."""
    if isinstance(value, torch.Tensor):
        return value.detach().to("cpu", copy=True)
    if isinstance(value, Mapping):
        return {key: _copied(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_copied(item) for item in value)
    return copy.deepcopy(value)


def _empty(new: Path) -> None:
    if rank_and_count()[0] == 0:
        shutil.rmtree(new, ignore_errors=True)
        # Made once only: where a file system is gone for a while, its folders would hide it later.
        new.mkdir(parents=new.parent not in _made)
        _made.add(new.parent)


def _write_files(new: Path, state: State, group: ProcessGroup | None) -> None:
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


def _publish(new: Path, final: Path, keep: int) -> None:
    """Give a whole checkpoint its name, note its step, and remove the older ones."""
    if rank_and_count()[0] != 0:
        return
    _sync(new)
    # The one of this step, if there is one, is put aside: `resume` finds it there.
    if final.exists():
        before = final.with_name(final.name + BEFORE)
        shutil.rmtree(before, ignore_errors=True)
        final.rename(before)
    new.rename(final)
    write_atomic(final.with_name("step"), f"{int(final.name.removeprefix(DONE))}\n".encode())
    _sync(final.parent)
    _remove_unfinished(final.parent)
    for old in sorted(_whole(final.parent), reverse=True)[keep:]:
        shutil.rmtree(old, ignore_errors=True)


def _whole(folder: Path) -> list[Path]:
    """Return the checkpoints that were written to the end."""
    return list(folder.glob(f"{DONE}*[0-9]"))


def _put_back(folder: Path) -> None:
    """Give a checkpoint its name again that was put aside for another, which did not follow."""
    for before in folder.glob(f"{DONE}*{BEFORE}"):
        if not before.with_suffix("").exists():
            with suppress(OSError):
                before.rename(before.with_suffix(""))


def _remove_unfinished(folder: Path) -> None:
    """A disk may be full of them."""
    _put_back(folder)
    for mark in (NEW, BEFORE):
        for path in folder.glob(f"{DONE}*{mark}"):
            shutil.rmtree(path, ignore_errors=True)


def _cause(error: BaseException) -> str:
    """Return the message; torch's exception has those of all ranks."""
    if isinstance(error, CheckpointException) and error.failures:
        error = next(iter(error.failures.values()))[0]
    return str(error).strip().splitlines()[-1] if str(error).strip() else type(error).__name__


def write_sums(new: Path, rank: int, ranks: int) -> None:
    """Write size and CRC-32 of the files of this rank; rank 0 adds the metadata.

    The name of the file states the number of ranks, so that a missing one is noticed.
    """
    files = [*new.glob(f"__{rank}_*"), *(new.glob(".metadata") if rank == 0 else ())]
    lines = [f"{file.stat().st_size} {_crc32(file)} {file.name}\n" for file in files]
    write_atomic(new / f"{rank}-of-{ranks}{_SUMS}", "".join(lines).encode())


def damage(folder: Path, rank: int, ranks: int) -> str:
    """Return what is wrong with this rank's share of the files; empty if nothing is."""
    try:
        sums = sorted(folder.glob(f"*-of-*{_SUMS}"))
        writers = sums[0].name.removesuffix(_SUMS).partition("-of-")[2] if sums else "its"
        if str(len(sums)) != writers:
            return f"it has the checksums of {len(sums)} of {writers} ranks"
        texts = {file.name: file.read_text().splitlines() for file in sums}
        if empty := next((name for name, own in texts.items() if not own), ""):
            return f"{empty} is empty"
        lines = [line for own in texts.values() for line in own]
        for line in lines[rank::ranks]:
            size, crc, name = line.split(" ", 2)
            file = folder / name
            if file.stat().st_size != int(size):
                return f"{name} has {file.stat().st_size} bytes instead of {size}"
            if _crc32(file) != int(crc):
                return f"{name} has another CRC-32 than when it was written"
        return "" if (folder / ".metadata").exists() else "it has no metadata"
    except (OSError, ValueError) as error:
        return str(error)


def _crc32(file: Path) -> int:
    crc = 0
    with file.open("rb") as stream:
        while block := stream.read(_BLOCK):
            crc = zlib.crc32(block, crc)
    return crc


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
