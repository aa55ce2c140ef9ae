"""Rows -> the verdict on each, what is recommended, and beyond which size nothing is gained.

A training is distributed for one of two reasons: it does not fit, or it takes too long. So one rank
comes first; of the strategies that fit, the first in the order of preference needs no other.
"""

from collections.abc import Iterator, Sequence
from math import inf

from msgspec.structs import replace

from hpc_train.advice.advice import (
    DATA_PARALLEL,
    TIME,
    Advice,
    AdviceRow,
    Question,
    RankMemory,
    hours_of,
    quantity_text,
    range_text,
    request_of,
)
from hpc_train.advice.machine import MachineSize
from hpc_train.advice.program import ProgramSize
from hpc_train.advice.rank_memory import GIB, rank_memory
from hpc_train.advice.rows import CHECKPOINTED, fits, make_rows
from hpc_train.advice.step_time import forecast_refusals, model_flops_utilisation

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
    question, taken = _plausible(question)
    rows, refused = make_rows(question)
    verdicts = ((row, *_verdict(row, rows, question)) for row in rows)
    judged = tuple(replace(row, verdict=word, reason=why) for row, word, why in verdicts)
    fitting = [row for row in judged if row.verdict == FITS]
    best = min(fitting, key=lambda row: (row.ranks, _preference(row)), default=None)
    if best is not None:
        done = replace(best, verdict="recommended")
        judged = tuple(done if row is best else row for row in judged)
    return Advice(
        rows=judged,
        one_rank=_one_rank(judged, question, refused.get("single", "it is not among the sizes")),
        recommended=_said(best, judged, question),
        limit=_limit(judged, question),
        refused=tuple(refused.items()),
        missing=(*taken, *missing(question)),
        not_forecast=tuple(dict.fromkeys(forecast_refusals(rows, question))),
    )


def _plausible(question: Question) -> tuple[Question, list[str]]:
    """Return the question with another strategy of measured steps that state none, and why.

    Without one they count as ddp, unless by the formulas that cannot have fitted.
    """
    measured, taken = [], []
    for one in question.measured:
        request = request_of(one.strategy, one.ranks, question)
        memory = rank_memory(request, question.program, 0.0) if one.guessed and one.here else None
        if memory is not None and fits(memory, question.machine) == "no":
            taken.append(
                f"the strategy of {one.source}, taken as fsdp, as {one.strategy} needs "
                f"{_gib(memory)} GiB; if it is another: a column strategy"
            )
            one = replace(one, strategy="fsdp")
        measured.append(one)
    return replace(question, measured=tuple(measured)), taken


def _verdict(row: AdviceRow, rows: Sequence[AdviceRow], question: Question) -> tuple[str, str]:
    refusal = next(_refusals(row, question), None)
    if refusal is not None:
        return refusal
    simpler = _simpler(row, rows)
    if simpler is not None:
        return "not needed", f"{simpler.strategy} fits"
    return {
        "no": (FITS, f"with {row.change}"),
        "perhaps": (FITS, f"{'' if row.memory_assumes else 'certainly '}with {row.change}")
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
    yield from _beyond_limits(row, question)
    if row.efficiency is not None and row.efficiency.high is not None:
        if row.efficiency.high < WORTH:
            yield (
                "not worth it",
                f"efficiency below {100 * WORTH:.0f} %, even if all communication is hidden",
            )


def _beyond_limits(row: AdviceRow, question: Question) -> Iterator[tuple[str, str]]:
    """Yield the limit that a row is not certain to meet: its upper bound counts."""
    hours = hours_of("GPU" if question.machine.gpus_per_node else "rank")
    limits = (
        ("too late", "deadline", row.end, question.deadline_s, TIME),
        ("too expensive", "budget", row.gpu_hours, question.budget_gpu_hours, hours),
    )
    for verdict, name, bounds, most, unit in limits:
        if most is not None and bounds is None:
            yield "possible", f"its time is unknown, and with it the {name}"
        elif most is not None and bounds is not None and not (bounds.high or inf) <= most:
            taken = f"it may take {range_text(bounds, unit)}"
            yield verdict, f"{taken}, and the {name} is {quantity_text(most, unit)}"


def _simpler(row: AdviceRow, rows: Sequence[AdviceRow]) -> AdviceRow | None:
    """Return a strategy that is preferred to a row's, and fits at the same size."""
    for other in rows:
        # As it is or with smaller micro-batches; checkpointing costs time.
        fits = other.fits == "yes" or (other.change and CHECKPOINTED not in other.change)
        if fits and other.ranks == row.ranks and _preference(other) < _preference(row):
            return other
    return None


def _preference(row: AdviceRow) -> int:
    return DATA_PARALLEL.index(row.strategy)


def _one_rank(rows: Sequence[AdviceRow], question: Question, refused: str) -> str:
    single = next((row for row in rows if row.strategy == "single"), None)
    noun = "One GPU" if question.machine.gpus_per_node else "One rank"
    if single is None:
        return f"{noun} cannot train it in this way: {refused}."
    with_change = f" with {single.change}" if single.change else ""
    if single.memory_assumes:
        with_change += f", assuming {' and '.join(single.memory_assumes)}"
    enough = f"{noun} suffices for the memory{with_change}: distribute only to be faster."
    said = {
        "yes": enough,
        "perhaps": f"{noun} may suffice: {_doubt(single).replace('its', 'the')}.",
        "unknown": f"Whether {noun[:1].lower()}{noun[1:]} suffices for the memory is unknown.",
        "no": f"{noun} does not suffice, whatever the micro-batch{with_change}.",
    }[single.fits]
    if single.change:
        said = enough
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
    program = question.program
    tf32 = program.precision == "fp32" and program.shape is None and question.machine.gpus_per_node
    of = "peak of TF32 (MFU), which torch uses for matrices only if asked" if tf32 else "peak (MFU)"
    yield f"The measured step reaches {100 * used:.0f} % of the {of}."
    if used < LOW_MFU and waits < WAITS:
        half = "bf16 instead of fp32, or TF32: torch.set_float32_matmul_precision('high'), "
        steps = "torch.compile, larger micro-batches, if memory allows"
        yield f"Make one GPU faster first: {half * (program.precision == 'fp32')}{steps}."


def _said(best: AdviceRow | None, rows: Sequence[AdviceRow], question: Question) -> str:
    if best is not None:
        how = f", {best.reason}" if best.reason else ""
        where = f"{best.strategy} on {question.counted(best.ranks)}"
        return f"Recommended: {where}{how}{best.assuming}."
    # A size that may fit is no recommendation: whoever starts it must know that it may fail.
    if may := [row for row in rows if row.verdict in ("may fit", "possible")]:
        return first_to_try(may, question)
    fitting = [row for row in rows if row.fits != "no" or row.change]
    if not fitting:
        unit = "GPU" if question.machine.gpus_per_node else "rank"
        return f"No strategy fits at these sizes: allow more {unit}s (--gpus)."
    certain = [row for row in fitting if row.fits == "yes" or row.change]
    certain = [row for row in certain if row.verdict != "not needed"]
    row = min(certain or fitting, key=lambda row: row.ranks)
    where = f"{row.strategy} on {question.counted(row.ranks)}"
    fits = "fits, but is" if certain else "is"
    return f"No size is recommended: {where} {fits} {row.verdict} ({row.reason})."


def _limit(rows: Sequence[AdviceRow], question: Question) -> str:
    """Return the largest size whose least efficiency is still worth it."""
    known = [row for row in rows if row.efficiency is not None and row.step.high is not None]
    worth = [row.ranks for row in known if row.efficiency and row.efficiency.low >= WORTH]
    if not known:
        measured = any(one.batch is None for one in question.measured)
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
    return f"Worth it up to {question.counted(last)}, the largest size considered."


def first_to_try(rows: Sequence[AdviceRow], question: Question) -> str:
    """Return the smallest size, with least memory, that may fit, and what would make it certain."""
    # The simplest that leaves half the GPU for what is not known, else what needs least.
    half = (question.machine.most_gib or 0.0) * GIB / 2

    def least(row: AdviceRow) -> tuple[int, float, int]:
        low = 0.0 if row.memory is None else row.memory.whole.low
        return row.ranks, 0.0 if low <= half else low, _preference(row)

    row = min(rows, key=least)
    where, memory = f"{row.strategy} on {question.counted(row.ranks)}", row.memory
    if memory is None:
        return (
            "No recommendation: without the number of parameters the memory is unknown. "
            "Count it: --program MODULE:FUNCTION, or state it: --condition parameters=7e9."
        )
    needs = f"needs {_gib(memory)} GiB"
    if question.machine.most_gib is None:
        what = "GPU" if question.machine.gpus_per_node else "node"
        return f"No recommendation, as the memory of the {what} is unknown: {where} {needs}."
    return (
        f"No strategy certainly fits. First to try: {where}, which {needs}{row.assuming}; "
        f"{_next(row, memory)}"
    )


def _gib(memory: RankMemory) -> str:
    return range_text(memory.whole.times(1 / GIB)).replace(">=", "at least")


def _next(row: AdviceRow, memory: RankMemory) -> str:
    if memory.activations.high is not None:
        return "a run of a few steps decides: --measured RUN."
    if row.samples is None:
        return "the batch is unknown: --condition global_batch=512."
    return (
        "its activations are unknown. Count them: --program MODULE:FUNCTION, or measure a few "
        "steps: --measured RUN."
    )


_COUNT = "--program MODULE:FUNCTION"


def missing(question: Question) -> Iterator[str]:
    """Yield what is not known, and how to get it."""
    yield from _of_program(question)
    yield from _assumed(question.program)
    yield from _of_batch(question.program)
    if question.measured and question.baseline is None:
        others = sorted({one.strategy for one in question.measured if one.batch})
        yield (
            f"a measured step of {', '.join(DATA_PARALLEL[1:])}: not compared with {others[0]}"
            if others
            else "the batch of the measured steps, without which they cannot be compared"
        )
    if not question.measured:
        yield "a measured step: run one size, then give the study or run: --measured STUDY"
    yield from _of_machine(question.machine)


def _of_program(question: Question) -> Iterator[str]:
    program = question.program
    peak = any(one.peak_memory_gib for one in question.measured)
    if program.parameters is None:
        yield f"the number of parameters: --condition parameters=124e6, or {_COUNT}"
    elif program.shape is None and program.activation_bytes is None and not peak:
        yield f"the activations of a sample: {_COUNT}, or a measured peak memory"
    if program.flops_per_sample is None:
        yield f"the operations of a sample: {_COUNT}, or --condition flops_per_sample=6e12"


def _assumed(program: ProgramSize) -> Iterator[str]:
    """Yield what a program of the user's own is taken to do, which changes memory and peak."""
    if program.model is not None:
        return
    taken = {"precision": (program.precision, "bf16"), "optimizer": (program.optimizer, "sgd")}
    for name, (value, other) in taken.items():
        if name not in program.sources:
            yield f"the {name}, taken as {value}; if it is another: --condition {name}={other}"


def _of_batch(program: ProgramSize) -> Iterator[str]:
    if program.global_batch is None and program.batch is None:
        yield "the batch: --condition global_batch=512"
    if program.steps is None:
        yield "the steps of the training: --condition steps=100000"
    elif program.global_batch is None:
        yield (
            "the time to the end, which needs one batch for all sizes: --condition global_batch=512"
        )


def _of_machine(machine: MachineSize) -> Iterator[str]:
    if not machine.gpus_per_node:
        return
    if machine.most_gib is None:
        yield f"the memory of the GPU ({machine.gpu or 'no gpu_model in the profile'})"
    if not machine.node_link:
        yield "the speed of the network: nics_per_node and nic_gbps of the partition"
