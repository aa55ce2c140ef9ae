"""Computation and communication of a step -> its time, within bounds.

Both at once, or one after the other: max(compute, communication) <= T <= compute + communication.
The ranks of a step wait for the slowest: the computation of the upper bound is 5 % longer on
several ranks than on one, and 2 % for each doubling. Published steps are within 3 % of these bounds
(`pytest tests/advice/test_published_steps.py`; docs/advise.md has the table).
"""

from __future__ import annotations

import math

from hpc_train.advice.advice import MeasuredStep
from hpc_train.advice.machine_size import MachineSize
from hpc_train.advice.program_size import ProgramSize
from hpc_train.base.quantities import Range
from hpc_train.jobs.operations import dtype_of

TERA = 1e12
_SEVERAL, _DOUBLING = 0.05, 0.02


def step_time(compute: Range, communication: Range, waits: float = 0.0, idle: float = 0.0) -> Range:
    """Return the bounds of a step.

    `waits` is what the slowest rank adds at most, as a part of the computation; `idle` the share of
    a step in which a pipeline waits.
    """
    high = None
    if compute.high is not None and communication.high is not None:
        high = compute.high * (1 + waits) / (1 - idle) + communication.high
    return Range(low=max(compute.low / (1 - idle), communication.low), high=high)


def slowest_rank(before: int, ranks: int) -> float:
    """Return what the slowest of `ranks` adds at most to a step measured on `before` ranks."""
    if ranks <= before:
        return 0.0
    return (_SEVERAL if before == 1 else 0.0) + _DOUBLING * math.log2(ranks / before)


def compute_time(
    program: ProgramSize,
    machine: MachineSize,
    ranks: int,
    samples: float,
    measured: MeasuredStep | None = None,
) -> Range:
    """Return the seconds that `samples` of a step take to compute on `ranks`.

    From a measured step, in proportion to the samples of a rank; from the operations and the peak
    of the GPU there is only a lower bound.
    """
    if measured is not None:
        share = samples / (measured.batch or samples) * measured.ranks / ranks
        return Range(low=measured.seconds * share, high=measured.seconds * share)
    peak = peak_of(machine, program)
    if program.flops_per_sample is None or peak is None:
        return Range()
    return Range(low=samples * program.flops_per_sample / (ranks * peak * TERA))


def peak_of(machine: MachineSize, program: ProgramSize) -> float | None:
    """Return the peak [TFLOP/s] of a GPU; fp32 may run as TF32, which is faster.

    In torch convolutions do; products of matrices only where a program asks for it, and the
    reference trainer does not.
    """
    dtype = dtype_of(program.precision)
    names = ("tf32", "fp32") if dtype == "fp32" and program.shape is None else (dtype,)
    found = [machine.peak_tflops[name] for name in names if name in machine.peak_tflops]
    return max(found, default=None)


def model_flops_utilisation(
    program: ProgramSize, machine: MachineSize, measured: MeasuredStep
) -> float | None:
    """Return the share of the GPUs' peak that a measured step reached; None if unknown."""
    peak = peak_of(machine, program)
    if peak is None or program.flops_per_sample is None or measured.batch is None:
        return None
    done = measured.batch * program.flops_per_sample / measured.seconds
    return done / (measured.ranks * peak * TERA)
