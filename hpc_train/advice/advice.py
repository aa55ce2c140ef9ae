"""Advice: which strategies fit a machine, what a step takes, and the verdict on each."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, log10
from typing import Literal, NamedTuple

from hpc_train.advice.machine import MachineSize
from hpc_train.advice.program import ProgramSize
from hpc_train.base.values import Value
from hpc_train.jobs.strategies import TrainingRequest, batch_problem, strategy_problem

MemoryFit = Literal["yes", "no", "perhaps", "unknown"]


class Range(Value, frozen=True, kw_only=True):
    """The least and the most that a quantity can be; `high` is None if nothing limits it."""

    low: float = 0.0
    high: float | None = None

    def __add__(self, other: Range) -> Range:
        """Return the bounds of a sum."""
        high = None if self.high is None or other.high is None else self.high + other.high
        return Range(low=self.low + other.low, high=high)

    def times(self, factor: float) -> Range:
        """Return the bounds of a multiple; the factor is not negative."""
        return Range(low=self.low * factor, high=None if self.high is None else self.high * factor)


def exactly(value: float) -> Range:
    """Return the bounds of a known number."""
    return Range(low=value, high=value)


class Unit(NamedTuple):
    """A unit of so many base units, used from `start` base units on."""

    start: float
    size: float
    name: str


Units = Sequence[Unit]
NUMBER: Units = (Unit(0.0, 1.0, ""),)
# From seconds. A step of 0.1 s or more is in seconds, as in every other table, and limits of jobs
# are in hours.
TIME: Units = (
    Unit(0.0, 1e-6, "us"),
    Unit(1e-3, 1e-3, "ms"),
    Unit(0.1, 1.0, "s"),
    Unit(120.0, 60.0, "min"),
    Unit(3600.0, 3600.0, "h"),
    Unit(10 * 86400.0, 86400.0, "d"),
    Unit(1000 * 86400.0, 365.25 * 86400.0, "years"),
)
# From bytes.
BYTES: Units = tuple(
    Unit(1000.0**power if power else 0.0, 1000.0**power, name)
    for power, name in enumerate(("B", "kB", "MB", "GB", "TB"))
)
_HOUR = 3600.0


def hours_of(noun: str) -> Units:
    """Return the units of time that all GPUs or ranks are busy, from hours: `3.2 GPU-h`."""
    return tuple(
        Unit(unit.start / _HOUR, unit.size / _HOUR, f"{noun}-{unit.name}".lstrip("-"))
        for unit in TIME
        if unit.name not in ("d", "years")
    )


def quantity_text(value: float, units: Units = NUMBER) -> str:
    """Return at least three significant digits in the largest unit that starts below a value."""
    if value == 0:
        return "0"
    unit = _unit(value, units)
    return f"{_digits(value / unit.size)} {unit.name}".rstrip()


def range_text(bounds: Range, units: Units = NUMBER) -> str:
    """Return `12.0 to 14.5 h`, `>= 12.0 h`, `<= 14.5 h`; one quantity if both ends look alike."""
    low = quantity_text(bounds.low, units)
    if bounds.high is None:
        return f">= {low}"
    high = quantity_text(bounds.high, units)
    if bounds.low == 0 and bounds.high > 0:
        return f"<= {high}"
    if low == high:
        return low
    if _unit(bounds.low, units) == _unit(bounds.high, units):
        low = low.partition(" ")[0]
    return f"{low} to {high}"


def _unit(value: float, units: Units) -> Unit:
    return next((unit for unit in reversed(units) if value >= unit.start), units[0])


def _digits(value: float) -> str:
    decimals = max(0, 2 - floor(log10(abs(value))))
    if abs(value) >= 10_000:
        return f"{value:,.0f}"
    return f"{value:.{decimals}f}" if decimals < 10 else f"{value:.3g}"


class RankMemory(Value, frozen=True, kw_only=True):
    """The memory of one rank by kind, in bytes.

    `late_gradients` are the bytes of the states that do not exist yet while all activations do:
    torch's `zero_grad` frees gradients, and the backward pass frees activations as it makes them.
    """

    states: Range
    gathered: Range
    buckets: Range
    activations: Range
    logits: Range
    context: Range
    late_gradients: float = 0.0

    @property
    def kinds(self) -> dict[str, Range]:
        """The bounds of each kind."""
        names = (name for name in self.__struct_fields__ if name != "late_gradients")
        return {name: getattr(self, name) for name in names}

    @property
    def whole(self) -> Range:
        """The bounds of the peak: the sum, but at least without late gradients or activations."""
        total = exactly(0.0)
        for bounds in self.kinds.values():
            total += bounds
        apart = min(self.late_gradients, self.activations.low + self.logits.low)
        return Range(low=total.low - apart, high=total.high)


class MeasuredStep(Value, frozen=True, kw_only=True):
    """A measured step: seconds, on how many ranks, with which global batch, and where.

    `data_share` is the part of a step, 0..1, in which it waited for data. `nodes` are None
    if they are not known. `here`: on the site that the advice is about, so that it is known to fit
    there. `guessed`: its runs do not state the strategy.
    """

    seconds: float
    ranks: int
    batch: float | None
    strategy: str
    source: str
    peak_memory_gib: float | None = None
    data_share: float | None = None
    nodes: int | None = None
    here: bool = False
    guessed: bool = False


class AdviceRow(Value, frozen=True, kw_only=True):
    """One strategy at one size; bounds without an upper end are open.

    `batch` samples of a step, `samples` those of a rank; `sent` bytes of a rank and step, None: no
    formula; `step` and `end` (of the training) in seconds, `speedup` and `efficiency` against the
    baseline, None: unknown. With a `forecast` [s] of a measured curve, `step` is its band. `change`
    is the smallest one with which the row fits; `reason` explains the verdict. `memory_assumes` and
    `step_assumes` are what memory and the upper bound of the step rest on, without being stated.
    """

    strategy: str
    ranks: int
    nodes: int
    batch: float | None
    samples: float | None
    sent: float | None
    memory: RankMemory | None = None
    fits: MemoryFit = "unknown"
    step: Range = Range()
    measured: bool = False
    forecast: float | None = None
    speedup: Range | None = None
    efficiency: Range | None = None
    end: Range | None = None
    gpu_hours: Range | None = None
    change: str = ""
    memory_assumes: tuple[str, ...] = ()
    step_assumes: tuple[str, ...] = ()
    verdict: str = ""
    reason: str = ""

    @property
    def assuming(self) -> str:
        """`, assuming adamw and data that keeps up`; empty if a verdict rests on neither."""
        fits = self.verdict in ("", "fits", "recommended", "may fit")
        of_memory = self.memory_assumes if fits or self.verdict == "does not fit" else ()
        *first, last = (*of_memory, *(self.step_assumes if fits else ())) or ("",)
        return f", assuming {', '.join(first)}{' and ' * bool(first)}{last}" if last else ""


class Advice(Value, frozen=True, kw_only=True):
    """The rows, the first and the last line, and the strategies that cannot run, with reasons.

    `not_forecast` are the reasons why measured strategies have no forecast.
    """

    rows: tuple[AdviceRow, ...]
    one_rank: str
    recommended: str
    limit: str
    refused: tuple[tuple[str, str], ...] = ()
    missing: tuple[str, ...] = ()
    not_forecast: tuple[str, ...] = ()


# In the order of preference: the first that fits needs no other.
DATA_PARALLEL = ("single", "ddp", "zero1", "fsdp", "hsdp")


class Question(Value, frozen=True, kw_only=True):
    """What is asked: a program on a machine, on these numbers of GPUs (or ranks), in order.

    The training must end within `deadline_s` [s], and cost at most `budget_gpu_hours` [h].
    """

    program: ProgramSize
    machine: MachineSize
    sizes: tuple[int, ...]
    measured: tuple[MeasuredStep, ...] = ()
    deadline_s: float | None = None
    budget_gpu_hours: float | None = None

    @property
    def baseline(self) -> MeasuredStep | None:
        """The measured step that forecasts start from: of the fewest ranks, ddp before others."""
        usable = [one for one in self.measured if one.batch and one.strategy in DATA_PARALLEL]
        return min(
            usable,
            key=lambda one: (one.ranks, DATA_PARALLEL.index(one.strategy)),
            default=None,
        )

    def counted(self, ranks: int) -> str:
        """Return `4 GPUs`, or `1 rank` on a machine without GPUs."""
        unit = "GPU" if self.machine.gpus_per_node else "rank"
        return f"{ranks:,} {unit}{'s' * (ranks != 1)}"

    def samples(self, ranks: int) -> float | None:
        """Return the samples of a step on so many data-parallel ranks."""
        if self.program.global_batch is not None:
            return float(self.program.global_batch)
        return None if self.program.batch is None else float(self.program.batch * ranks)


def request_of(name: str, ranks: int, question: Question) -> TrainingRequest:
    """Return a strategy on so many ranks, with the program's options."""
    program, machine = question.program, question.machine
    nodes = machine.nodes(ranks)
    return TrainingRequest(
        strategy=name,
        model=program.model or "cnn",
        world_size=ranks,
        device="cuda" if machine.gpus_per_node else "cpu",
        mesh=(nodes, ranks // nodes) if name == "hsdp" and nodes > 1 else (),
        accumulate=program.accumulate,
        precision=program.precision,
        checkpointing=program.checkpointing,
    )


def problem_of(request: TrainingRequest, question: Question) -> str | None:
    """Return why a strategy cannot run on these ranks, or None."""
    name, machine = request.strategy, question.machine
    nodes = machine.nodes(request.world_size)
    if name == "hsdp" and (nodes == 1 or not machine.gpus_per_node):
        return "hsdp shards within a node and copies between nodes: it needs several nodes"
    samples = question.samples(request.data_size)
    if samples is not None and samples < request.data_size:
        plural = "s" * (samples != 1)
        return f"{name} cannot divide {samples:g} sample{plural} among {request.data_size} ranks"
    problem = strategy_problem(request)
    if problem is None and samples is not None and request.microbatches > 1:
        return batch_problem(request, int(samples / request.data_size))
    return problem
