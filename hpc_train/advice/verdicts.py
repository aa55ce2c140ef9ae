"""Rows -> the verdict on each, what is recommended, and beyond which size nothing is gained.

A training is distributed for one of two reasons: it does not fit, or it takes too long. So one rank
comes first; of the strategies that fit, the first in the order of preference needs no other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from hpc_train.advice.choices import (
    beyond,
    budget_text,
    choices,
    deadline_text,
    in_limits,
    no_choice,
)
from hpc_train.advice.first_to_try import first_to_try
from hpc_train.advice.measured_curve import forecast_refusals
from hpc_train.advice.missing_values import missing
from hpc_train.advice.question import DATA_PARALLEL, Question
from hpc_train.advice.rows import CHECKPOINTED, make_rows
from hpc_train.advice.step_time import model_flops_utilisation
from hpc_train.model.advice import Advice, AdviceRow

FITS = "fits"
# Below this efficiency the added GPUs are not worth it: the gate of most centres.
WORTH = 0.75
# One GPU below this share of its peak usually waits for data or runs without compiling.
LOW_MFU = 0.2
# From here on, data decides about the speed more than the GPUs do.
WAITS = 0.2
# So few samples rarely fill a GPU.
FEW_SAMPLES = 1


def advise(question: Question) -> Advice:
    """Return the advice on a program, a machine and sizes."""
    rows, refused = make_rows(question)
    judged = tuple(_judged(row, rows, question) for row in rows)
    best = _recommended(judged, question)
    if best is not None:
        done = replace(best, verdict="recommended")
        judged = tuple(done if row is best else row for row in judged)
    return Advice(
        rows=judged,
        one_rank=_one_rank(judged, question, refused.get("single", "it is not among the sizes")),
        recommended=_said(best, judged, question),
        limit=_limit(judged, question),
        choices=tuple(choices(judged, question)),
        refused=tuple(refused.items()),
        missing=tuple(missing(question)),
        not_forecast=forecast_refusals(rows, question),
    )


def _judged(row: AdviceRow, rows: Sequence[AdviceRow], question: Question) -> AdviceRow:
    verdict, reason = _verdict(row, rows, question)
    return replace(row, verdict=verdict, reason=reason)


def _verdict(row: AdviceRow, rows: Sequence[AdviceRow], question: Question) -> tuple[str, str]:
    refusal = next(_refusals(row, question), None)
    if refusal is not None:
        return refusal
    simpler = _simpler(row, rows)
    if simpler is not None:
        return "not needed", f"{simpler.strategy} fits"
    return {
        "no": (FITS, f"with {row.change}"),
        "perhaps": (FITS, f"certainly with {row.change}")
        if row.change
        else ("may fit", _doubt(row)),
        "unknown": ("possible", _unknown(row, question)),
    }.get(row.fits, (FITS, ""))


def _doubt(row: AdviceRow) -> str:
    if row.samples is None:
        return "its batch is unknown"
    if row.memory is not None and row.memory.activations.high is None:
        return "its activations are unknown"
    return "the bounds of its memory include that of the GPU"


def _unknown(row: AdviceRow, question: Question) -> str:
    if row.memory is None:
        return "its memory is unknown"
    return f"the memory of the {'GPU' if question.machine.gpus_per_node else 'node'} is unknown"


def _refusals(row: AdviceRow, question: Question) -> Iterator[tuple[str, str]]:
    """Yield why a row is certainly no choice, in the order of importance."""
    if row.fits == "no" and not row.change:
        yield "does not fit", "even with one sample"
    if row.samples is not None and row.samples <= FEW_SAMPLES and row.ranks > 1:
        yield "not advised", f"{row.samples:g} sample for each rank: too few to fill a GPU"
    if row.efficiency is not None and row.efficiency.high is not None:
        if row.efficiency.high < WORTH:
            yield (
                "not worth it",
                f"efficiency below {100 * WORTH:.0f} %, even if all traffic is hidden",
            )
    if beyond(row.end, question.deadline_s):
        yield "too late", f"the deadline is {deadline_text(question)}"
    if beyond(row.gpu_hours, question.budget_gpu_hours):
        yield "too expensive", f"the budget is {budget_text(question)}"


def _simpler(row: AdviceRow, rows: Sequence[AdviceRow]) -> AdviceRow | None:
    """Return a strategy that is preferred to a row's, and fits at the same size."""
    for other in rows:
        same = other.ranks == row.ranks and other.strategy != row.strategy
        if same and _fits_at_no_cost(other) and _preference(other) < _preference(row):
            return other
    return None


def _fits_at_no_cost(row: AdviceRow) -> bool:
    """Whether a row fits as it is or with smaller micro-batches; checkpointing costs time."""
    return row.fits == "yes" or bool(row.change and CHECKPOINTED not in row.change)


def _preference(row: AdviceRow) -> int:
    names = DATA_PARALLEL
    return names.index(row.strategy) if row.strategy in names else len(names)


def _recommended(rows: Sequence[AdviceRow], question: Question) -> AdviceRow | None:
    """Return the row with the fewest GPUs that fits and, as far as asked, is in time and cheap."""
    found = [row for row in rows if row.verdict == FITS and in_limits(row, question)]
    return min(found, key=lambda row: (row.ranks, _preference(row)), default=None)


def _one_rank(rows: Sequence[AdviceRow], question: Question, refused: str) -> str:
    single = next((row for row in rows if row.strategy == "single"), None)
    noun = "One GPU" if question.machine.gpus_per_node else "One rank"
    if single is None:
        return f"{noun} cannot train it so: {refused}."
    with_change = f" with {single.change}" if single.change else ""
    said = {
        "yes": f"{noun} suffices for the memory: distribute only to be faster.",
        "perhaps": f"{noun} may suffice: {_doubt(single).replace('its', 'the')}.",
        "unknown": f"Whether {noun[:1].lower()}{noun[1:]} suffices for the memory is unknown.",
        "no": f"{noun} does not suffice, whatever the micro-batch.",
    }[single.fits]
    if with_change:
        said = f"{noun} suffices for the memory{with_change}: distribute only to be faster."
    return " ".join((said, *_utilisation(question)))


def _utilisation(question: Question) -> Iterator[str]:
    """Yield how well the measured step uses its GPUs, and what to mend before distributing it."""
    baseline = question.baseline
    if baseline is None:
        return
    waits = baseline.data_share or 0.0
    if waits >= WAITS:
        yield (
            f"The measured step waits for data for {100 * waits:.0f} % of its time: give it more "
            "workers, or faster storage, before more GPUs."
        )
    used = model_flops_utilisation(question.program, question.machine, baseline)
    if used is None:
        return
    yield f"The measured step reaches {100 * used:.0f} % of the peak (MFU)."
    if used < LOW_MFU and waits < WAITS:
        yield f"Make one GPU faster first: {', '.join(_first_steps(question))}."


def _first_steps(question: Question) -> Iterator[str]:
    """Yield what usually makes a single GPU faster, of what the program does not do yet."""
    if question.program.precision == "fp32":
        yield "bf16 instead of fp32"
    yield "torch.compile"
    yield "larger micro-batches, if memory allows"


def _said(best: AdviceRow | None, rows: Sequence[AdviceRow], question: Question) -> str:
    if best is not None:
        how = f", {best.reason}" if best.reason else ""
        return f"Recommended: {best.strategy} on {question.counted(best.ranks)}{how}."
    # A size that may fit is no recommendation: whoever starts it must know that it may fail.
    may = [row for row in rows if row.verdict in ("may fit", "possible")]
    tried = [row for row in may if in_limits(row, question)]
    return first_to_try(tried, question) if tried else no_choice(rows, question)


def _limit(rows: Sequence[AdviceRow], question: Question) -> str:
    """Return the largest size whose least efficiency is still worth it."""
    known = [row for row in rows if row.efficiency is not None and row.step.high is not None]
    worth = [row.ranks for row in known if row.efficiency and row.efficiency.low >= WORTH]
    if not known:
        measured = bool(question.measured)
        why = "the batch of a step is unknown" if measured else "no step is measured"
        return f"Up to which size it is worth it is unknown: {why}."
    last = max(worth, default=1)
    if any(row.ranks > last for row in known):
        return (
            f"Beyond {question.counted(last)} the efficiency may be below {100 * WORTH:.0f} %: "
            "not worth it before a measurement."
        )
    if any(row.ranks > last for row in rows):
        return f"Worth it up to {question.counted(last)}; beyond, the time has no upper bound."
    return f"Worth it up to {question.counted(last)}, the largest size asked for."
