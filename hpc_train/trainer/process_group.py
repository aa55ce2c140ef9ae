"""This process among the ranks: rank, device, backend, versions; and sums over all ranks."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import distributed
from torch.distributed import ProcessGroup

from hpc_train.trainer import WorkloadError
from hpc_train.trainer.spawn_ranks import SPAWNED, env_int, world_size

# In this order: a launcher that was started by another one sets the variables of both.
SIGNS = {
    "spawn": SPAWNED,
    "torchrun": "TORCHELASTIC_RUN_ID",
    "mpirun": "OMPI_COMM_WORLD_RANK",
    "srun": "SLURM_STEP_ID",
}

# Backend of the job's plan; `--backend` takes precedence.
PLANNED = "HPCTRAIN_BACKEND"
BACKENDS = ("nccl", "gloo", "mpi")
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class RankGroup:
    """`backend` is `none` for a single process without a process group."""

    rank: int
    world_size: int
    device: torch.device
    backend: str
    launcher: str

    def sums(self, values: Sequence[float]) -> list[float]:
        """Return each value summed over all ranks, on every rank; every rank must call it."""
        total = torch.tensor(values, dtype=torch.float64, device=self.device)
        if self.backend != "none":
            distributed.all_reduce(total)
        return [float(value) for value in total.tolist()]

    def share(self, tensors: Sequence[torch.Tensor]) -> None:
        """Give every rank the values of rank 0; every rank must call it."""
        if self.backend != "none":
            for tensor in tensors:
                distributed.broadcast(tensor, 0)

    def synchronise(self) -> None:
        """Wait until the work of this device is done, so that its time can be measured."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)


@contextmanager
def joined(backend: str, device: str) -> Iterator[RankGroup]:
    """Join the process group that RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT describe.

    Without RANK there is one process and no group.

    Raises:
        WorkloadError: a variable is missing or invalid, or device or backend are not available.
    """
    alone = "RANK" not in os.environ
    size = world_size()
    place = _device(device, size)
    chosen = "none" if alone else _backend(backend, place)
    if not alone:
        if place.type == "cuda":
            torch.cuda.set_device(place)
        distributed.init_process_group(chosen, device_id=place if chosen == "nccl" else None)
    group = RankGroup(
        rank=env_int("RANK", 0),
        world_size=size,
        device=place,
        backend=chosen,
        launcher=launcher_of(os.environ, size),
    )
    failed = True
    try:
        yield group
        failed = False
    finally:
        # After a failure the other ranks may not come: NCCL would wait for them, and gloo at times.
        if not (alone or failed):
            distributed.destroy_process_group()


def rank_and_count() -> tuple[int, int]:
    """Return the number of this rank and that of all ranks; 0 and 1 without a process group."""
    if not distributed.is_initialized():
        return 0, 1
    return distributed.get_rank(), distributed.get_world_size()


def of_ranks(value: T, group: ProcessGroup | None = None) -> list[T]:
    """Return the values of all ranks, in their order; every rank must call it."""
    if not distributed.is_initialized():
        return [value]
    values: list[Any] = [None] * distributed.get_world_size(group)
    distributed.all_gather_object(values, value, group=group)
    return values


def of_rank_0(value: T) -> T:
    """Return the value of rank 0; every rank must call it."""
    values = [value]
    if distributed.is_initialized():
        distributed.broadcast_object_list(values, 0)
    return values[0]


def any_rank(flag: bool, group: ProcessGroup | None = None) -> bool:
    """Whether the flag is set on any rank: one all-reduce, which every rank must call."""
    return any_ranks((flag,), group)[0]


def any_ranks(flags: Sequence[bool], group: ProcessGroup | None = None) -> tuple[bool, ...]:
    """Return for each flag whether it is set on any rank, in one all-reduce."""
    if not distributed.is_initialized():
        return tuple(flags)
    device: torch.device | str = "cpu"
    if not any(name in distributed.get_backend(group) for name in ("gloo", "mpi")):
        # A program may have given its device to the group only, not made it the current one.
        own = group or distributed.group.WORLD
        device = getattr(own, "bound_device_id", None) or "cuda"
    numbers = torch.tensor(flags, dtype=torch.int64, device=device)
    distributed.all_reduce(numbers, distributed.ReduceOp.MAX, group)
    return tuple(map(bool, numbers.tolist()))


def launcher_of(environment: Mapping[str, str], size: int) -> str:
    """Return the launcher of this rank: torchrun, mpirun, srun, spawn, single, or unknown."""
    if "RANK" not in environment:
        return "single"
    for name, variable in SIGNS.items():
        # The batch script itself is step -5 of newer Slurm.
        if not environment.get(variable, "-5").startswith("-"):
            return name
    return "single" if size == 1 else "unknown"


def _device(wanted: str, size: int) -> torch.device:
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if wanted == "cuda" and not count:
        raise WorkloadError("--device cuda: torch sees no CUDA device here")
    if wanted == "cpu" or not count:
        return torch.device("cpu")
    if size > 1 and "LOCAL_RANK" not in os.environ:
        raise WorkloadError("LOCAL_RANK must be set to choose among this node's CUDA devices")
    local = env_int("LOCAL_RANK", 0)
    # If a scheduler binds one device to each task, every rank has only device 0.
    if local >= count > 1:
        raise WorkloadError(f"LOCAL_RANK={local}, but this node has {count} CUDA devices")
    return torch.device("cuda", local if local < count else 0)


def _backend(wanted: str, device: torch.device) -> str:
    absent = [n for n in ("WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT") if n not in os.environ]
    if absent:
        raise WorkloadError(f"{' and '.join(absent)} must be set when RANK is")
    backend = wanted if wanted != "auto" else _automatic(device)
    if backend == "nccl" and device.type != "cuda":
        raise WorkloadError("--backend nccl needs a CUDA device; use gloo on the CPU")
    if not distributed.is_backend_available(backend):
        raise WorkloadError(f"backend {backend}: this torch was built without it")
    return backend


def _automatic(device: torch.device) -> str:
    """Return the job's choice, unless it is nccl and this device is not a GPU."""
    usual = "nccl" if device.type == "cuda" else "gloo"
    planned = os.environ.get(PLANNED) or usual
    if planned not in BACKENDS:
        raise WorkloadError(f"{PLANNED}={planned!r} is none of {', '.join(BACKENDS)}")
    return usual if planned == "nccl" else planned


def conditions(group: RankGroup) -> dict[str, str]:
    """Return versions and hardware, which do not depend on the number of ranks."""
    found = {"torch": torch.__version__.partition("+")[0], "device": group.device.type}
    if group.device.type != "cuda":
        return found
    if torch.version.cuda:
        found["cuda"] = torch.version.cuda
        found["nccl"] = ".".join(map(str, torch.cuda.nccl.version()))  # type: ignore[no-untyped-call]
    elif torch.version.hip:
        found["rocm"] = torch.version.hip
    found["gpu"] = torch.cuda.get_device_name(group.device)
    return found
