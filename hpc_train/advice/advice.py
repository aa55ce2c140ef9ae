"""Advice: which strategies fit a machine, what a step takes, and the verdict on each."""

from typing import Literal

from hpc_train.base.quantities import Range, exactly
from hpc_train.base.value import Value

MemoryFit = Literal["yes", "no", "perhaps", "unknown"]


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


class StepForecast(Value, frozen=True, kw_only=True):
    """A step [s] that a curve of measured sizes gives for a larger one, with its band."""

    seconds: float
    band: Range


class AdviceRow(Value, frozen=True, kw_only=True):
    """One strategy at one size; bounds without an upper end are open.

    `batch` samples of a step, `samples` those of a rank; `sent` bytes of a rank and step, None: no
    formula; `step` and `end` (of the training) in seconds, `speedup` and `efficiency` against the
    baseline, None: unknown. With a `forecast`, `step` is its band. `change` is the smallest one
    with which the row fits; `reason` explains the verdict. `memory_assumes` and `step_assumes` are
    what memory and the upper bound of the step rest on, without being stated.
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
    forecast: StepForecast | None = None
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
