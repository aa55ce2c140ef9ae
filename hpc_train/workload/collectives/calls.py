"""The calls of torch.distributed, each with a send and a receive tensor.

torch has allreduce and broadcast in place only. Out of place, the tensor is copied first, and the
time contains the copy: a program that keeps its input has to do the same.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, distributed

Call = Callable[[Tensor, Tensor], None]


def call_of(name: str, rank: int, ranks: int, root: int) -> Call:
    """Return the function that runs a collective, blocking on the CPU, queued on a GPU."""
    if name == "sendrecv":
        return _send_receive(rank, ranks)
    if name == "broadcast":
        return _broadcast(rank, root)
    return {
        "allreduce": _all_reduce,
        "allgather": _all_gather(),
        "reduce_scatter": _reduce_scatter(),
        "alltoall": _all_to_all,
    }[name]


def _copied(send: Tensor, receive: Tensor) -> None:
    if send.data_ptr() != receive.data_ptr():
        receive.copy_(send)


def _all_reduce(send: Tensor, receive: Tensor) -> None:
    _copied(send, receive)
    distributed.all_reduce(receive)


def _broadcast(rank: int, root: int) -> Call:
    def call(send: Tensor, receive: Tensor) -> None:
        if rank == root:
            _copied(send, receive)
        distributed.broadcast(receive, root)

    return call


# torch 2.13 renamed the next two, and the old names print a warning.
def _all_gather() -> Call:
    gather = getattr(distributed, "all_gather_single", None) or distributed.all_gather_into_tensor
    return lambda send, receive: gather(receive, send)


def _reduce_scatter() -> Call:
    scatter = getattr(distributed, "reduce_scatter_single", None)
    scatter = scatter or distributed.reduce_scatter_tensor
    return lambda send, receive: scatter(receive, send)


def _all_to_all(send: Tensor, receive: Tensor) -> None:
    distributed.all_to_all_single(receive, send)


def _send_receive(rank: int, ranks: int) -> Call:
    """Each rank sends to the next one and receives from the one before, as nccl-tests."""
    after, before = (rank + 1) % ranks, (rank - 1) % ranks

    def call(send: Tensor, receive: Tensor) -> None:
        pair = [
            distributed.P2POp(distributed.isend, send, after),
            distributed.P2POp(distributed.irecv, receive, before),
        ]
        for work in distributed.batch_isend_irecv(pair):
            work.wait()

    return call


TENSOR_TYPES = {
    "int8": torch.int8,
    "uint8": torch.uint8,
    "int32": torch.int32,
    "int64": torch.int64,
    "half": torch.float16,
    "bfloat16": torch.bfloat16,
    "float": torch.float32,
    "double": torch.float64,
}
