"""The batch of each rank, and the learning rate that follows from the global batch."""

from __future__ import annotations

import math
from dataclasses import dataclass

from hpc_train.workload import WorkloadError

RULES = ("none", "linear", "sqrt")


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSize:
    """Samples per optimiser step: of all ranks together, and of each rank."""

    global_size: int
    size: int


def share_batch(
    global_batch_size: int | None, batch_size: int | None, world_size: int
) -> BatchSize:
    """Return the batch; exactly one of the two sizes is given.

    Raises:
        ValueError: neither size is given.
        WorkloadError: the global batch cannot be shared equally, so that the ranks' gradients would
            have unequal weight.
    """
    if batch_size is not None:
        return BatchSize(global_size=batch_size * world_size, size=batch_size)
    if global_batch_size is None:
        raise ValueError("neither a global batch size nor one per rank")
    if global_batch_size % world_size:
        below = global_batch_size // world_size * world_size
        sizes = [str(size) for size in (below, below + world_size) if size]
        raise WorkloadError(
            f"--global-batch-size {global_batch_size} cannot be shared equally by {world_size} "
            f"ranks; nearest: {' or '.join(sizes)}"
        )
    return BatchSize(global_size=global_batch_size, size=global_batch_size // world_size)


def scale_learning_rate(rate: float, rule: str, global_batch_size: int, base: int) -> float:
    """Return the learning rate for this global batch under `none`, `linear` or `sqrt`."""
    factor = global_batch_size / base
    return rate * {"none": 1.0, "linear": factor, "sqrt": math.sqrt(factor)}[rule]
