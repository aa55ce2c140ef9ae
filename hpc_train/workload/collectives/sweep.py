"""One collective over all sizes: rank 0 prints the table while it is measured."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Iterator, Sequence

import torch
from torch import distributed

from hpc_train.model.collectives import (
    ALIGNMENT,
    COLLECTIVES,
    DTYPES,
    Message,
    message_of,
    message_sizes,
)
from hpc_train.workload import WorkloadError
from hpc_train.workload.collectives.measure import CollectiveTimer
from hpc_train.workload.collectives.nccl_tests_format import NcclTestsTable, RankDevice, head
from hpc_train.workload.collectives.sweep_options import SweepOptions
from hpc_train.workload.emit import emit, write_line
from hpc_train.workload.process_group import RankGroup, conditions

_COPIED = "# out-of-place: with the time to copy the input, as torch has this in-place only"


def sweep(options: SweepOptions, group: RankGroup) -> int:
    """Measure and print all sizes; return 1 if a result was wrong, else 0.

    Raises:
        WorkloadError: no size has a part for each rank, the buffers do not fit into memory, or the
            backend lacks the collective.
    """
    messages = messages_of(options, group.world_size)
    table = NcclTestsTable(
        collective=COLLECTIVES[options.collective],
        dtype=options.dtype,
        root=options.root,
        ranks=group.world_size,
    )
    if group.rank == 0:
        _emit_conditions(options, group)
    _print(group, list(_head(options, group)))
    timer = _timer(options, group, messages)
    buses: list[float] = []
    wrong = 0
    for message in messages:
        halves = [timer.measure(message, in_place=in_place) for in_place in (False, True)]
        _print(group, [table.row(message, halves)])
        buses += [table.bandwidth(message, half.seconds).bus for half in halves]
        wrong += sum(bool(half.wrong) for half in halves)
    _print(group, table.foot(wrong, sum(buses) / len(buses)))
    return int(wrong > 0)


def messages_of(options: SweepOptions, ranks: int) -> list[Message]:
    """Return the messages of all sizes, without those that have no part for each rank.

    Raises:
        WorkloadError: none is left.
    """
    messages = [message for _, message in _all_messages(options, ranks) if message.elements]
    if not messages:
        collective = COLLECTIVES[options.collective]
        least = DTYPES[options.dtype] if collective.passes != 1 else ALIGNMENT * ranks
        raise WorkloadError(
            f"--largest {options.largest}: {collective.name} of {options.dtype} on {ranks} ranks "
            f"needs at least {least} B"
        )
    return messages


def _all_messages(options: SweepOptions, ranks: int) -> Iterator[tuple[int, Message]]:
    """Yield each requested size with its message, which may be empty."""
    collective = COLLECTIVES[options.collective]
    for size in message_sizes(options.smallest, options.largest, options.factor):
        yield size, message_of(collective, size, options.dtype, ranks)


def _left_out(options: SweepOptions, ranks: int) -> str:
    """Return the sizes without a message, for a line of the head."""
    empty = [size for size, one in _all_messages(options, ranks) if not one.elements]
    return ", ".join(f"{size} B" for size in empty)


def _timer(options: SweepOptions, group: RankGroup, messages: Sequence[Message]) -> CollectiveTimer:
    capacity = max(message.elements for message in messages)
    try:
        timer = CollectiveTimer(options, group, capacity)
    except (RuntimeError, MemoryError):  # torch raises both, by device
        size = capacity * DTYPES[options.dtype]
        raise WorkloadError(
            f"two buffers of {size} B do not fit into the memory of {group.device}"
        ) from None
    try:
        timer.warm_up(messages)
    except (RuntimeError, NotImplementedError) as failure:
        if "support" not in str(failure):
            raise
        raise WorkloadError(
            f"backend {group.backend} of torch {torch.__version__} has no {options.collective} of "
            f"{options.dtype}: {str(failure).splitlines()[0]}"
        ) from None
    return timer


def _print(group: RankGroup, lines: Iterable[str]) -> None:
    if group.rank == 0:
        for line in lines:
            write_line(line)


def _head(options: SweepOptions, group: RankGroup) -> Iterator[str]:
    """Yield what precedes the rows; every rank must call it."""
    collective = COLLECTIVES[options.collective]
    devices: list[str] = [""] * group.world_size
    distributed.all_gather_object(devices, _device(group))
    yield f"# Collective test starting: {collective.test}"
    yield (
        f"# nThread 1 nGpus 1 minBytes {options.smallest} maxBytes {options.largest} step: "
        f"{options.factor}(factor) warmup iters: {options.warmup} iters: {options.iterations} "
        f"agg iters: 1 validation: {int(options.check)} graph: 0"
    )
    yield f"# torch.distributed {torch.__version__}, backend {group.backend}, by {group.launcher}"
    if collective.name in ("allreduce", "broadcast"):
        yield _COPIED
    if left_out := _left_out(options, group.world_size):
        yield f"# left out, as each of {group.world_size} ranks needs {ALIGNMENT} B: {left_out}"
    yield "#"
    yield "# Using devices"
    yield from devices
    yield from head()


def _device(group: RankGroup) -> str:
    process, host = os.getpid(), socket.gethostname()
    if group.device.type != "cuda":
        return RankDevice(group.rank, process, host, 0, "0x00", "CPU").line()
    found = torch.cuda.get_device_properties(group.device)
    # Older versions of torch do not know the address.
    address = [getattr(found, f"pci_{part}_id", 0) for part in ("domain", "bus", "device")]
    bus = "{:04x}:{:02x}:{:02x}".format(*address)
    return RankDevice(group.rank, process, host, group.device.index or 0, bus, found.name).line()


def _emit_conditions(options: SweepOptions, group: RankGroup) -> None:
    emit(
        event="conditions",
        conditions={
            **conditions(group),
            "benchmark": COLLECTIVES[options.collective].test,
            "precision": options.dtype,
            "backend": group.backend,
        },
    )
