"""Benchmark of the collectives of torch.distributed, with the output of nccl-tests.

Here: `python -m hpc_train.trainer.collectives allreduce`, which each rank of a job runs.
Not here: the factors and sizes (`model.collectives`), and the trainer.
"""

from __future__ import annotations

from dataclasses import dataclass


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
