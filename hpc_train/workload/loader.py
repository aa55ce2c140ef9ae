"""Batches of a data-parallel rank: read by worker processes, ahead of the step that needs them.

Workers matter where a sample is decoded or made; samples that are in memory need none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple, cast

import torch
from torch.utils.data import BatchSampler, DataLoader, DistributedSampler

from hpc_train.workload.stop_request import keep_worker
from hpc_train.workload.training_data import Pair, TrainingData

_PREFETCHED = 2  # batches of each worker


class Order:
    """The indexes of each batch of a data-parallel rank in an epoch, all of the same size.

    `place` is its number and the number of such ranks. The global batches, as sets, do not depend
    on the number of ranks.
    """

    def __init__(self, size: int, batch_size: int, place: tuple[int, int], seed: int) -> None:
        rank, ranks = place
        self.sampler: DistributedSampler[int] = DistributedSampler(
            cast("Any", range(size)), num_replicas=ranks, rank=rank, seed=seed, drop_last=True
        )
        self.batches = BatchSampler(cast("Iterable[int]", self.sampler), batch_size, drop_last=True)
        self.first = 0

    def begin(self, epoch: int, first: int) -> None:
        """Continue with batch `first` of an epoch."""
        self.sampler.set_epoch(epoch)
        self.first = first

    def __iter__(self) -> Iterator[list[int]]:
        return islice(iter(self.batches), self.first, None)

    def __len__(self) -> int:
        return len(self.batches) - self.first


class Place(NamedTuple):
    """Where batches go, and the type of images there."""

    device: torch.device
    dtype: torch.dtype


class Loader:
    """Reads the batches of one rank; on CUDA into pinned memory, copied while the GPU computes."""

    def __init__(self, data: TrainingData, order: Order, place: Place, workers: int) -> None:
        self.data, self.order, self.place = data, order, place
        self.batches: DataLoader[Pair] = DataLoader(
            cast("Any", data),
            batch_sampler=cast("Any", order),
            collate_fn=as_it_is,
            num_workers=workers,
            prefetch_factor=_PREFETCHED if workers else None,
            persistent_workers=workers > 0,
            worker_init_fn=keep_worker,
            pin_memory=place.device.type == "cuda",
        )

    def epoch(self, epoch: int, first: int = 0) -> Iterator[Pair]:
        """Yield inputs and targets of each batch of an epoch from `first` on, on the device."""
        self.order.begin(epoch, first)
        for pair in self.batches:
            yield self.data.prepare(pair, *self.place)


def as_it_is(batch: Any) -> Any:
    """Return a batch, which the data set has already joined."""
    return batch
