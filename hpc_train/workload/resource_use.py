"""What a training used on a rank: memory, bytes sent in a step, time for communication only."""

from __future__ import annotations

import gc
import resource
from pathlib import Path

import torch
from torch import Tensor
from torch.distributed.tensor import DTensor

from hpc_train.workload.emit import emit
from hpc_train.workload.process_group import RankGroup
from hpc_train.workload.spawn_ranks import env_int

INTERFACES = Path("/proc/self/net/dev")
_SENT = 8  # the column of transmitted bytes, the first after those received
GIB = 2**30


class ResourceUse:
    """Made before the model is built, on every rank."""

    def __init__(self, group: RankGroup) -> None:
        self.group, self.before, self.sent = group, tensor_bytes(), 0
        if group.device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(group.device)

    def start(self) -> None:
        """Begin to count what the steps send; every rank must call it."""
        self.group.sums([0.0])  # no rank is still sending the weights
        self.sent = sent_bytes()

    def report(self, steps: int, exposed: float | None) -> None:
        """Emit memory [GiB], and bytes per step and rank, of the `steps` since `start`.

        `exposed` is the share of a step in which this rank only waits for communication.

        Only gloo is counted: other backends bypass the interfaces of the kernel. The number is
        that of a node, divided by its ranks; other traffic of the node is included.
        """
        sent = sent_bytes() - self.sent
        kept = tensor_bytes() - self.before
        emit(
            event="memory",
            memory=peak_bytes(self.group) / GIB,
            state_memory=kept / GIB,
            scope="per_rank",
        )
        if exposed is not None:
            emit(event="profile", exposed_communication=exposed, scope="per_rank")
        if self.group.backend == "gloo" and env_int("LOCAL_RANK", 0) == 0 and steps:
            ranks = env_int("LOCAL_WORLD_SIZE", self.group.world_size, low=1)
            emit(event="traffic", sent_bytes=sent / steps / ranks, scope="per_rank")


def peak_bytes(group: RankGroup) -> int:
    """Return the peak of the device's allocator or, on a CPU, of the resident set."""
    if group.device.type == "cuda":
        return torch.cuda.max_memory_allocated(group.device)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def sent_bytes() -> int:
    """Return the bytes that the interfaces of this network namespace sent, headers included."""
    lines = INTERFACES.read_text(encoding="ascii").splitlines()[2:]
    return sum(int(line.partition(":")[2].split()[_SENT]) for line in lines)


def tensor_bytes() -> int:
    """Return the bytes of all storages that tensors of this process share, gradients included."""
    gc.collect()
    storages: dict[int, int] = {}
    for found in gc.get_objects():
        if issubclass(type(found), Tensor):
            _add(found, storages)
    return sum(storages.values())


def _add(tensor: Tensor, storages: dict[int, int]) -> None:
    if tensor.is_leaf and tensor.grad is not None:
        _add(tensor.grad, storages)
    local = tensor.to_local() if isinstance(tensor, DTensor) else tensor
    if local.device.type != "meta" and local.layout == torch.strided:
        storage = local.untyped_storage()
        storages[storage.data_ptr()] = storage.nbytes()
