"""The time of a step: by formulas within bounds, and on the measured curve with its band."""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from hpc_train.advice.advice import DATA_PARALLEL, AdviceRow, MeasuredStep, Question, Range
from hpc_train.advice.machine import MachineSize
from hpc_train.advice.program import ProgramSize
from hpc_train.jobs.operations import dtype_of

TERA = 1e12
_SEVERAL, _DOUBLING = 0.05, 0.02


def step_time(compute: Range, communication: Range, waits: float = 0.0) -> Range:
    """Return the bounds of a step.

    `waits` is what the slowest rank adds at most, as a part of the computation.
    """
    high = None
    if compute.high is not None and communication.high is not None:
        high = compute.high * (1 + waits) + communication.high
    return Range(low=max(compute.low, communication.low), high=high)


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


# A batch that is divided among ranks is rounded.
_SAME = 1e-6
LEAST_SIZES, LEAST_ON_NODES, MOST_TIMES = 3, 2, 4.0
PER_DOUBLING = 0.08


class SizeRate(NamedTuple):
    """The rate [samples/s] of all ranks together on so many ranks and nodes."""

    ranks: int
    nodes: int
    rate: float


Curve = Sequence[SizeRate]


def step_forecast(row: AdviceRow, question: Question) -> tuple[float, Range] | None:
    """Return the step [s] that the measured sizes of a row's strategy give, and its band.

    None: it is refused.
    """
    curve = measured_curve(row, question)
    if not curve or not row.batch or row.ranks <= curve[-1].ranks or refusal(curve, row.ranks):
        return None
    rate, low, high = forecast_rate(curve, row.ranks)
    return row.batch / rate, Range(low=row.batch / high, high=row.batch / low)


def forecast_refusals(rows: Sequence[AdviceRow], question: Question) -> Iterator[str]:
    for row in rows:
        curve = measured_curve(row, question)
        if len(curve) > 1 and row.ranks > curve[-1].ranks:
            if reason := refusal(curve, row.ranks):
                yield f"{row.strategy}: {reason}"


def refusal(curve: Curve, ranks: int) -> str | None:
    """Return why these rates, in ascending order, give no forecast for so many ranks, or None."""
    several = sum(one.nodes > 1 for one in curve)
    if len(curve) < LEAST_SIZES or several < LEAST_ON_NODES:
        return (
            f"a forecast needs {LEAST_SIZES} measured sizes, {LEAST_ON_NODES} of them on several "
            f"nodes; there are {len(curve)} and {several}"
        )
    if ranks > MOST_TIMES * curve[-1].ranks:
        return (
            f"no forecast beyond {MOST_TIMES * curve[-1].ranks:g}, {MOST_TIMES:g} times the "
            f"largest measured size: measure {2 * curve[-1].ranks} first"
        )
    return None


def forecast_rate(curve: Curve, ranks: int) -> tuple[float, float, float]:
    """Return the rate [samples/s] of more ranks than the largest measured size, and its band.

    The curve has at least two sizes.
    """
    rate = _last_slope(curve, ranks)
    shorter = [[*curve[:n], *curve[n + 1 :]] for n in range(len(curve)) if len(curve) > 2]
    rates = [rate, *(_last_slope(one, ranks) for one in shorter)]
    doubt = PER_DOUBLING * math.log2(ranks / curve[-1].ranks)
    return rate, min(rates) * (1 - doubt), max(rates) * (1 + doubt)


def _last_slope(curve: Curve, ranks: int) -> float:
    before, last = curve[-2:]
    slope = math.log(last.rate / before.rate) / math.log(last.ranks / before.ranks)
    return last.rate * float((ranks / last.ranks) ** min(slope, 1.0))


def measured_curve(row: AdviceRow, question: Question) -> list[SizeRate]:
    """Return the rates of the sizes that scale to a row: same strategy, same batch or share of it.

    One rank is the same for all data-parallel strategies.
    """
    found: dict[int, SizeRate] = {}
    for one in question.measured:
        nodes = one.nodes or question.machine.nodes(one.ranks)
        known = found.get(one.ranks)
        if _scales(one, row) and (known is None or nodes < known.nodes):
            found[one.ranks] = SizeRate(one.ranks, nodes, (one.batch or 0.0) / one.seconds)
    return [found[ranks] for ranks in sorted(found)]


def _scales(one: MeasuredStep, row: AdviceRow) -> bool:
    alike = one.strategy == row.strategy or (
        one.ranks == 1 and row.strategy in DATA_PARALLEL and one.strategy in DATA_PARALLEL
    )
    if not alike or not one.batch or not row.batch:
        return False
    return _near(one.batch, row.batch) or _near(one.batch / one.ranks, row.batch / row.ranks)


def _near(one: float, other: float) -> bool:
    return abs(one - other) <= _SAME * other


def batch_of(program: ProgramSize, steps: Sequence[MeasuredStep]) -> dict[str, str]:
    """Return the batch that all measured steps had, together or of each rank; empty if none."""
    batches = {one.batch for one in steps}
    if program.global_batch is not None or program.batch is not None or None in batches:
        return {}
    each = {(one.batch or 0.0) / one.ranks for one in steps}
    for name, values in (("global_batch", batches), ("batch", each)):
        if len(values) == 1:
            return {name: f"{values.pop():g}"}
    return {}
