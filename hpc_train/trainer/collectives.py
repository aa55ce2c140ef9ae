"""Benchmark of the collectives of torch.distributed, with the output of nccl-tests.

Here: `python -m hpc_train.trainer.collectives allreduce`, which each rank of a job runs.
Not here: the factors and sizes (`jobs.collectives`), and the trainer.
"""

from __future__ import annotations

import argparse
import os
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import cycle, islice
from typing import NamedTuple

import torch
from torch import Tensor, distributed

from hpc_train.jobs.collectives import (
    ALIGNMENT,
    COLLECTIVES,
    DTYPES,
    Collective,
    Message,
    algorithm_bandwidth,
    collective_name,
    message_of,
    message_sizes,
    parse_size,
)
from hpc_train.trainer import WorkloadError
from hpc_train.trainer.emit import emit, write_line
from hpc_train.trainer.process_group import RankGroup, conditions, joined, of_ranks
from hpc_train.trainer.spawn_ranks import exit_code_of, leave, run_ranks, world_size
from hpc_train.trainer.trainer_options import Parser, natural, positive

PROGRAM = "python -m hpc_train.trainer.collectives"
# iterations and warm-up: those of nccl-tests
SMALLEST, LARGEST, FACTOR, ITERATIONS, WARMUP = "1K", "64M", 4, 20, 5


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepOptions:
    """The checked command line; sizes in bytes."""

    collective: str
    smallest: int
    largest: int
    factor: int
    iterations: int
    warmup: int
    dtype: str
    root: int
    check: bool
    backend: str
    device: str


def parse_options(arguments: Sequence[str] | None = None) -> SweepOptions:
    """Read the command line, `sys.argv` by default.

    Raises:
        SystemExit: 2, with one line on stderr: an option is unknown or out of range.
    """
    parser = Parser(
        prog=PROGRAM,
        description="Measure a collective of torch.distributed; print the table of nccl-tests.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("collective", type=_collective, help=", ".join(COLLECTIVES))
    add("-b", "--smallest", type=_size, default=SMALLEST, metavar="SIZE", help="8, 64K, 16M, 1G")
    add("-e", "--largest", type=_size, default=LARGEST, metavar="SIZE")
    add("-f", "--factor", type=positive, default=FACTOR, help="from one size to the next")
    add("-n", "--iterations", type=positive, default=ITERATIONS, help="timed, of each size")
    add("-w", "--warmup", type=natural, default=WARMUP, help="untimed, of both extreme sizes")
    add("-d", "--dtype", choices=tuple(DTYPES), default="float")
    add("-r", "--root", type=natural, default=0, help="sending rank of broadcast")
    add("--no-check", dest="check", action="store_false", help="do not compare the results")
    add("--backend", choices=("auto", "gloo", "nccl", "mpi"), default="auto")
    add("--device", choices=("auto", "cuda", "cpu"), default="auto")
    options = SweepOptions(**vars(parser.parse_args(arguments)))
    if options.smallest > options.largest:
        parser.error(
            f"--smallest is {options.smallest} B, more than --largest, {options.largest} B"
        )
    return options


def _collective(text: str) -> str:
    name = collective_name(text)
    if name is None:
        known = ", ".join(COLLECTIVES)
        raise argparse.ArgumentTypeError(f"{text!r} is not a collective; known: {known}")
    return name


def _size(text: str) -> int:
    try:
        return parse_size(text)
    except ValueError as failure:
        raise argparse.ArgumentTypeError(str(failure)) from None


def main() -> int:
    """Run the benchmark on every rank that the environment describes; return the exit code.

    0 is success, 1 a wrong result, 2 an invalid option.

    Raises:
        WorkloadError: the options do not fit the ranks.
    """
    options, ranks = parse_options(), world_size()
    if ranks < 2:
        raise WorkloadError(
            f"{options.collective} needs at least 2 ranks, and RANK and WORLD_SIZE describe one: "
            f"torchrun --nproc-per-node 2 -m {PROGRAM.rpartition(' ')[2]} {options.collective}"
        )
    if options.root >= ranks:
        raise WorkloadError(f"--root {options.root}: the ranks are 0 to {ranks - 1}")
    return run_ranks(partial(benchmark, options))


def benchmark(options: SweepOptions) -> int:
    """Run the benchmark as one rank; return its exit code."""
    with joined(options.backend, options.device) as group:
        return sweep(options, group)


def sweep(options: SweepOptions, group: RankGroup) -> int:
    """Measure and print all sizes; return 1 if a result was wrong, else 0.

    Raises:
        WorkloadError: no size has a part for each rank, the buffers do not fit into memory, or the
            backend lacks the collective.
    """
    collective, ranks = COLLECTIVES[options.collective], group.world_size
    asked = {
        size: message_of(collective, size, options.dtype, ranks)
        for size in message_sizes(options.smallest, options.largest, options.factor)
    }
    messages = [message for message in asked.values() if message.elements]
    if not messages:
        least = DTYPES[options.dtype] if collective.passes != 1 else ALIGNMENT * ranks
        raise WorkloadError(
            f"--largest {options.largest}: {collective.name} of {options.dtype} on {ranks} ranks "
            f"needs at least {least} B"
        )
    table = NcclTestsTable(
        collective=collective, dtype=options.dtype, root=options.root, ranks=ranks
    )
    if group.rank == 0:
        named = {"benchmark": collective.test, "precision": options.dtype, "backend": group.backend}
        emit(event="conditions", conditions={**conditions(group), **named})
    _print(group, list(_head(options, group, asked)))
    timer = _timer(options, group, messages)
    buses: list[float] = []
    wrong = 0
    for message in messages:
        halves = [timer.measure(message, in_place=in_place) for in_place in (False, True)]
        _print(group, [table.row(message, halves)])
        buses += [table.bandwidth(message, half.seconds)[1] for half in halves]
        wrong += sum(bool(half.wrong) for half in halves)
    _print(group, table.foot(wrong, sum(buses) / len(buses)))
    return int(wrong > 0)


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


def _head(options: SweepOptions, group: RankGroup, asked: Mapping[int, Message]) -> Iterator[str]:
    """Yield what precedes the rows; every rank must call it."""
    collective = COLLECTIVES[options.collective]
    yield f"# Collective test starting: {collective.test}"
    yield (
        f"# nThread 1 nGpus 1 minBytes {options.smallest} maxBytes {options.largest} step: "
        f"{options.factor}(factor) warmup iters: {options.warmup} iters: {options.iterations} "
        f"agg iters: 1 validation: {int(options.check)} graph: 0"
    )
    yield f"# torch.distributed {torch.__version__}, backend {group.backend}, by {group.launcher}"
    if collective.name in ("allreduce", "broadcast"):
        yield "# out-of-place: with the time to copy the input, as torch has this in-place only"
    if left_out := ", ".join(f"{size} B" for size, one in asked.items() if not one.elements):
        yield f"# left out, as each of {group.world_size} ranks needs {ALIGNMENT} B: {left_out}"
    yield "#"
    yield "# Using devices"
    yield from of_ranks(device_line(group))
    yield from HEAD


def device_line(group: RankGroup) -> str:
    """Return the line of this rank in the list of devices, a CPU with the PCI address 0x00."""
    number, bus, name = 0, "0x00", "CPU"
    if group.device.type == "cuda":
        found = torch.cuda.get_device_properties(group.device)
        # Older versions of torch do not know the address.
        address = [getattr(found, f"pci_{part}_id", 0) for part in ("domain", "bus", "device")]
        bus = "{:04x}:{:02x}:{:02x}".format(*address)
        number, name = group.device.index or 0, found.name
    process = f"Group  0 Pid {os.getpid():6d} on {socket.gethostname():>10}"
    return f"#  Rank {group.rank:2d} {process} device {number:2d} [{bus}] {name}"


# Times of one collective, measured as by nccl-tests (`BenchTime` in its `src/common.cu`).
#
# Per size and placement: one untimed call, a barrier, k calls in a row, one synchronisation. The
# time is that of the wall clock divided by k, the mean over all ranks. Calls take their tensors
# from changing parts of the buffers, so that a small message does not stay in the cache.

Pair = tuple[Tensor, Tensor]


class CollectiveTimer:
    """The buffers of a rank for messages of up to `capacity` elements."""

    def __init__(self, options: SweepOptions, group: RankGroup, capacity: int) -> None:
        self._options, self._group = options, group
        self._collective = COLLECTIVES[options.collective]
        self._call = call_of(options.collective, group.rank, group.world_size, options.root)
        kind = TENSOR_TYPES[options.dtype]
        self._send = torch.zeros(capacity, dtype=kind, device=group.device)
        self._receive = torch.zeros(capacity, dtype=kind, device=group.device)

    def warm_up(self, messages: Sequence[Message]) -> None:
        """Run the untimed calls of the largest and of the smallest message."""
        for message in (messages[-1], messages[0]):
            self._run(self._pairs(message, in_place=False), self._options.warmup)
        self._group.synchronise()

    def measure(self, message: Message, *, in_place: bool) -> Placement:
        """Return the time of a call, and the wrong elements of one more call."""
        pairs = self._pairs(message, in_place=in_place)
        self._run(pairs, 1)
        self._wait()
        begun = time.perf_counter()
        self._run(pairs, self._options.iterations)
        self._group.synchronise()
        seconds = (time.perf_counter() - begun) / self._options.iterations
        mean = self._group.sums([seconds])[0] / self._group.world_size
        checked = self._options.check and (self._collective.in_place or not in_place)
        return Placement(mean, self._wrong(message, in_place=in_place) if checked else None)

    def _run(self, pairs: Sequence[Pair], times: int) -> None:
        for send, receive in islice(cycle(pairs), times):
            self._call(send, receive)

    def _wait(self) -> None:
        self._group.synchronise()
        distributed.barrier()
        self._group.synchronise()

    def _pairs(self, message: Message, *, in_place: bool) -> list[Pair]:
        """Return the send and receive tensors of consecutive calls."""
        places = min(len(self._receive) // message.elements, self._options.iterations)
        starts = (number * message.elements for number in range(places))
        return [self._pair(message, start, in_place=in_place) for start in starts]

    def _pair(self, message: Message, start: int, *, in_place: bool) -> Pair:
        buffer = self._receive if in_place else self._send
        send, receive = buffer[start:], self._receive[start:]
        # As in MPI and NCCL: the part of this rank in the larger array.
        own = self._group.rank * min(message.send, message.receive) if in_place else 0
        if message.send < message.receive:
            send = send[own:]
        elif message.receive < message.send:
            receive = receive[own:]
        return send[: message.send], receive[: message.receive]

    def _wrong(self, message: Message, *, in_place: bool) -> int:
        """Run a call with known values; return the wrong elements on all ranks."""
        group, collective = self._group, self._collective
        send, receive = self._pair(message, 0, in_place=in_place)
        self._receive[: message.elements].zero_()
        root = self._options.root
        if not collective.rooted or group.rank == root:
            fill(send, group.rank, group.world_size, reduces=collective.reduces)
        self._wait()
        self._call(send, receive)
        group.synchronise()
        wrong = count_wrong(collective, receive, group.rank, group.world_size, root)
        return round(group.sums([float(wrong)])[0])


# Values to send, and those that must arrive: exact in each type, in any order of the sum.
#
# Element i of rank r is a whole number of 1 to 15. In a sum only eight ranks have a part in an
# element, the others have 0 there: so the sum is at most 120, which int8 and bfloat16 represent,
# for any number of ranks. No expected value is 0, to which the result is set before.

VALUES, TOGETHER = 15, 8
# Elements of a temporary tensor of int64, so that a large message needs no second one of its size.
_BLOCK = 1 << 20


def values(places: Tensor, rank: int, ranks: int, *, reduces: bool) -> Tensor:
    """Return what a rank sends at these places of its array, as int64."""
    sent = _sent(places, rank)
    return torch.where((places + rank) % ranks < TOGETHER, sent, 0) if reduces else sent


def _sent(places: Tensor, rank: Tensor | int) -> Tensor:
    return 1 + (places * 31 + rank * 17) % VALUES


def fill(send: Tensor, rank: int, ranks: int, *, reduces: bool) -> None:
    """Write the values of a rank into its tensor."""
    for block, places in _blocks(send):
        block.copy_(values(places, rank, ranks, reduces=reduces))


def count_wrong(collective: Collective, received: Tensor, rank: int, ranks: int, root: int) -> int:
    """Return the number of elements of the result that differ from what must have arrived."""
    wrong = 0
    for block, places in _blocks(received):
        due = _expected(collective, places, len(received), (rank, ranks, root))
        wrong += int((block != due.to(block.dtype)).sum())
    return wrong


def _expected(
    collective: Collective, places: Tensor, count: int, position: tuple[int, int, int]
) -> Tensor:
    """Return the values at these places of a result of `count` elements."""
    rank, ranks, root = position
    name = collective.name
    if collective.reduces:
        own = places + rank * count if name == "reduce_scatter" else places
        # The ranks for which (place + rank) % ranks is less than TOGETHER.
        senders = ((shift - own) % ranks for shift in range(min(TOGETHER, ranks)))
        return sum((_sent(own, sender) for sender in senders), torch.zeros_like(own))
    if name == "broadcast":
        return _sent(places, root)
    if name == "sendrecv":
        return _sent(places, (rank - 1) % ranks)
    part = count // ranks
    sender, place = places // part, places % part
    return _sent(place + rank * part if name == "alltoall" else place, sender)


def _blocks(tensor: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield parts of a tensor, each with the places of its elements."""
    for start in range(0, len(tensor), _BLOCK):
        block = tensor[start : start + _BLOCK]
        yield block, torch.arange(start, start + len(block), device=tensor.device)


# The calls of torch.distributed, each with a send and a receive tensor.
#
# torch has allreduce and broadcast in place only. Out of place, the tensor is copied first, and the
# time contains the copy: a program that keeps its input has to do the same.

Call = Callable[[Tensor, Tensor], None]


def call_of(name: str, rank: int, ranks: int, root: int) -> Call:
    """Return the function that runs a collective, blocking on the CPU, queued on a GPU."""
    # torch 2.13 renamed these two, and the old names print a warning.
    gather = getattr(distributed, "all_gather_single", None) or distributed.all_gather_into_tensor
    scatter = getattr(distributed, "reduce_scatter_single", None)
    scatter = scatter or distributed.reduce_scatter_tensor

    def all_reduce(send: Tensor, receive: Tensor) -> None:
        _copy(send, receive)
        distributed.all_reduce(receive)

    def broadcast(send: Tensor, receive: Tensor) -> None:
        if rank == root:
            _copy(send, receive)
        distributed.broadcast(receive, root)

    def send_receive(send: Tensor, receive: Tensor) -> None:
        """Send to the next rank and receive from the one before, as nccl-tests."""
        pair = [
            distributed.P2POp(distributed.isend, send, (rank + 1) % ranks),
            distributed.P2POp(distributed.irecv, receive, (rank - 1) % ranks),
        ]
        for work in distributed.batch_isend_irecv(pair):
            work.wait()

    calls: dict[str, Call] = {
        "allreduce": all_reduce,
        "broadcast": broadcast,
        "sendrecv": send_receive,
        "allgather": lambda send, receive: gather(receive, send),
        "reduce_scatter": lambda send, receive: scatter(receive, send),
        "alltoall": lambda send, receive: distributed.all_to_all_single(receive, send),
    }
    return calls[name]


def _copy(send: Tensor, receive: Tensor) -> None:
    if send.data_ptr() != receive.data_ptr():
        receive.copy_(send)


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


_WIDE, _NARROW = 7, 6


class Placement(NamedTuple):
    """Seconds of one call, and wrong elements on all ranks; None if they were not counted."""

    seconds: float
    wrong: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NcclTestsTable:
    """The table of a collective; `root` is printed for broadcast only."""

    collective: Collective
    dtype: str
    root: int
    ranks: int

    def bandwidth(self, message: Message, seconds: float) -> tuple[float, float]:
        """Return algorithm and bus bandwidth [GB/s = 1e9 B/s], as nccl-tests defines them."""
        algorithm = algorithm_bandwidth(self.bytes_of(message), seconds)
        return algorithm, algorithm * self.collective.bus_factor(self.ranks)

    def bytes_of(self, message: Message) -> int:
        """Return the size of a message, that of the larger of its two arrays."""
        return message.elements * DTYPES[self.dtype]

    def row(self, message: Message, placements: Sequence[Placement]) -> str:
        """Return the row of a message, measured out of place and in place."""
        operation = "sum" if self.collective.reduces else "none"
        root = self.root if self.collective.rooted else -1
        lead = f"{self.bytes_of(message):12d}  {message.printed:12d}  {self.dtype:>8}"
        halves = (self._half(message, placement) for placement in placements)
        return f"{lead}  {operation:>6}  {root:6d}{''.join(halves)}"

    def _half(self, message: Message, placement: Placement) -> str:
        time = fitted(placement.seconds * 1e6, _WIDE)
        both = self.bandwidth(message, placement.seconds)
        speeds = "  ".join(fitted(speed, _NARROW) for speed in both)
        wrong = "N/A" if placement.wrong is None else f"{placement.wrong:g}"
        return f"  {time}  {speeds}  {wrong:>6}"

    def foot(self, wrong_halves: int, average: float) -> Iterator[str]:
        """Yield the lines below the rows: halves with wrong elements, the mean busbw of all."""
        yield f"# Out of bounds values : {wrong_halves} {'FAILED' if wrong_halves else 'OK'}"
        yield f"# Avg bus bandwidth    : {average:g} "
        yield "#"
        yield f"# Collective test concluded: {self.collective.test}"


HEAD = (
    "#",
    "#                                                   "
    "           out-of-place                       in-place          ",
    "#       size         count      type   redop    root"
    "     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong ",
    "#        (B)    (elements)                          "
    "     (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)         ",
)


def fitted(value: float, width: int) -> str:
    """Return a number in `width` characters as `getFloatStr` of nccl-tests: 2 to 0 decimals."""
    digits = len(str(int(value))) if value >= 1 else 0
    for decimals, spare in ((2, 2), (1, 1), (0, -1)):
        if digits < width - spare:
            return f"{value:{width}.{decimals}f}"
    return f"{value:{width}.1e}" if width >= _WIDE else f"{value:{width}.0e}"


if __name__ == "__main__":
    leave(exit_code_of(main))
