"""Times of one collective, measured as by nccl-tests (`BenchTime` in its `src/common.cu`).

Per size and placement: one untimed call, a barrier, k calls in a row, one synchronisation. The
time is that of the wall clock divided by k, the mean over all ranks. Calls take their tensors
from changing parts of the buffers, so that a small message does not stay in the cache.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import cycle, islice

import torch
from torch import Tensor, distributed

from hpc_train.model.collectives import COLLECTIVES, Message
from hpc_train.workload.collectives.calls import TENSOR_TYPES, call_of
from hpc_train.workload.collectives.known_values import count_wrong, fill
from hpc_train.workload.collectives.nccl_tests_format import Placement
from hpc_train.workload.collectives.sweep_options import SweepOptions
from hpc_train.workload.process_group import RankGroup

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
