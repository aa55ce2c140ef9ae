"""Rows -> the verdict on each, what is recommended, and beyond which size nothing is gained.

A training is distributed for one of two reasons: it does not fit, or it takes too long. So one rank
comes first; of the strategies that fit, the first in the order of preference needs no other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from hpc_train.advice.choices import beyond, budget_text, choices, deadline_text, no_choice
from hpc_train.advice.measured_curve import forecast_refusals
from hpc_train.advice.question import DATA_PARALLEL, Question
from hpc_train.advice.rows import CHECKPOINTED, make_rows
from hpc_train.advice.step_time import model_flops_utilisation
from hpc_train.model.advice import Advice, AdviceRow
from hpc_train.model.value_range import Range

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
        missing=tuple(_missing(question)),
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
        else ("may fit", "the bounds of its memory include that of the GPU"),
        "unknown": ("possible", "its memory is unknown"),
    }.get(row.fits, (FITS, ""))


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
    for words in ((FITS,), ("may fit", "possible")):
        found = [row for row in rows if row.verdict in words and _in_time(row, question)]
        if found:
            return min(found, key=lambda row: (row.ranks, _preference(row)))
    return None


def _in_time(row: AdviceRow, question: Question) -> bool:
    return _within(row.end, question.deadline_s) and _within(
        row.gpu_hours, question.budget_gpu_hours
    )


def _within(bounds: Range | None, most: float | None) -> bool:
    """Whether even the upper bound is within a limit."""
    if most is None:
        return True
    return bounds is not None and bounds.high is not None and bounds.high <= most


def _one_rank(rows: Sequence[AdviceRow], question: Question, refused: str) -> str:
    single = next((row for row in rows if row.strategy == "single"), None)
    noun = "One GPU" if question.machine.gpus_per_node else "One rank"
    if single is None:
        return f"{noun} cannot train it so: {refused}."
    with_change = f" with {single.change}" if single.change else ""
    said = {
        "yes": f"{noun} suffices for the memory: distribute only to be faster.",
        "perhaps": f"{noun} may suffice: the bounds of the memory include that of the GPU.",
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
        certain = "" if best.verdict == FITS or not best.reason else "but "
        how = f", {certain}{best.reason}" if best.reason else ""
        unit = "GPU" if question.machine.gpus_per_node else "rank"
        return f"Recommended: {best.strategy} on {best.ranks} {unit}{'s' * (best.ranks > 1)}{how}."
    return no_choice(rows, question)


def _limit(rows: Sequence[AdviceRow], question: Question) -> str:
    """Return the largest size whose least efficiency is still worth it."""
    known = [row for row in rows if row.efficiency is not None and row.step.high is not None]
    worth = [row.ranks for row in known if row.efficiency and row.efficiency.low >= WORTH]
    unit = "GPUs" if question.machine.gpus_per_node else "ranks"
    if not known:
        return "Up to which size it is worth it is unknown: no step is measured."
    last = max(worth, default=1)
    if any(row.ranks > last for row in known):
        return (
            f"Beyond {last} {unit} the efficiency may be below {100 * WORTH:.0f} %: "
            "not worth it before a measurement."
        )
    if any(row.ranks > last for row in rows):
        return f"Worth it up to {last} {unit}; beyond, the time has no upper bound."
    return f"Worth it up to {last} {unit}, the largest size asked for."


def _missing(question: Question) -> Iterator[str]:
    """Yield what is not known, and how to get it."""
    program, machine = question.program, question.machine
    if program.parameters is None:
        yield "the number of parameters: --condition parameters=124e6"
    if program.global_batch is None and program.batch is None:
        yield "the batch: --condition global_batch=512"
    if program.steps is None:
        yield "the steps of the training: --condition steps=100000"
    elif program.global_batch is None:
        yield "the time to the end, which needs one batch for all sizes: --condition global_batch"
    if question.measured and question.baseline is None:
        yield "the batch of the measured steps, without which they cannot be compared"
    if not question.measured:
        yield "a measured step: run one size, then give the study or run: --measured STUDY"
    if machine.gpus_per_node and machine.most_gib is None:
        yield f"the memory of the GPU ({machine.gpu or 'no gpu_model in the profile'})"
    if machine.gpus_per_node and not machine.node_link:
        yield "the speed of the network: nics_per_node and nic_gbps of the partition"
