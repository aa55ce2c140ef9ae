"""Program and machine -> one row for each strategy and size: memory, traffic, time, cost."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from hpc_train.advice.communication_time import communication_time
from hpc_train.advice.question import DATA_PARALLEL, OF_LAYERS, Question, problem_of, request_of
from hpc_train.advice.rank_memory import GIB, rank_memory, training_size
from hpc_train.advice.step_time import compute_time, slowest_rank, step_time
from hpc_train.model.advice import AdviceRow, MeasuredStep, MemoryFit, RankMemory
from hpc_train.model.machine_size import MachineSize
from hpc_train.model.program_size import ProgramSize
from hpc_train.model.strategy_costs import idle_share, sent_bytes
from hpc_train.model.training_strategies import TrainingRequest
from hpc_train.model.value_range import Range, exactly

# The allocator keeps blocks that it cannot use.
USABLE = 0.95
CHECKPOINTED = "activation checkpointing"
_HOUR = 3600.0


def make_rows(question: Question) -> tuple[list[AdviceRow], dict[str, str]]:
    """Return the rows, and why a strategy has none at any size."""
    names = DATA_PARALLEL + (OF_LAYERS if question.program.shape else ())
    rows: list[AdviceRow] = []
    refused: dict[str, str] = {}
    for ranks in question.sizes:
        for name in names:
            request = request_of(name, ranks, question)
            problem = problem_of(request, question)
            if problem is None:
                rows.append(_with_change(_row(request, question), question))
                refused.pop(name, None)
            elif name not in {row.strategy for row in rows}:
                refused[name] = problem
    return rows, refused


def _row(request: TrainingRequest, question: Question) -> AdviceRow:
    program, machine = question.program, question.machine
    samples = question.samples(request.data_size)
    own = None if samples is None else samples / request.data_size
    memory = _memory(request, program, question, (own or 0.0) / request.microbatches)
    sent = None
    if program.parameters is not None and (program.shape or request.strategy in DATA_PARALLEL):
        sent = sent_bytes(request, training_size(program, _backend(machine)))
    row = AdviceRow(
        strategy=request.strategy,
        ranks=request.world_size,
        nodes=machine.nodes(request.world_size),
        samples=own,
        memory=memory,
        fits=fits(memory, machine) if own is not None else "unknown",
        sent=sent,
        step=_step(request, sent, question),
        measured=_measured(request, question) is not None,
    )
    return _with_cost(_with_speedup(row, question), question)


def _memory(
    request: TrainingRequest, program: ProgramSize, question: Question, micro_batch: float
) -> RankMemory | None:
    """Return the memory by formulas; the peak of a measured step replaces unknown activations."""
    found = rank_memory(request, program, micro_batch)
    peaks = [one for one in question.measured if one.peak_memory_gib and one.batch]
    if found is None or program.shape is not None or not peaks or not micro_batch:
        return found
    step = peaks[0]
    before = request_of(step.strategy, step.ranks, question)
    states = rank_memory(before, program, 0.0)
    rest = (step.peak_memory_gib or 0.0) * GIB - (states.states.low if states else 0.0)
    ratio = micro_batch / ((step.batch or 1.0) / before.data_size / before.microbatches)
    if rest <= 0:
        return found
    activations = Range(low=rest * min(ratio, 1.0), high=rest * max(ratio, 1.0))
    return replace(found, activations=activations, logits=exactly(0.0), buckets=exactly(0.0))


def _backend(machine: MachineSize) -> str:
    return "nccl" if machine.gpus_per_node else "gloo"


def fits(memory: RankMemory | None, machine: MachineSize) -> MemoryFit:
    """Return whether the memory of a rank is that of a GPU or less."""
    if memory is None or machine.least_gib is None or machine.most_gib is None:
        return "unknown"
    whole = memory.whole
    if whole.low > machine.most_gib * GIB:
        return "no"
    certain = whole.high is not None and whole.high <= machine.least_gib * GIB * USABLE
    # Without activations, the sum is only what a rank needs at least.
    return "yes" if certain and memory.activations.high is not None else "perhaps"


def _measured(request: TrainingRequest, question: Question) -> MeasuredStep | None:
    for one in question.measured:
        same = one.ranks == request.world_size and one.strategy == request.strategy
        if same and one.batch in (None, question.samples(request.data_size)):
            return one
    return None


def _step(request: TrainingRequest, sent: float | None, question: Question) -> Range:
    found = _measured(request, question)
    if found is not None:
        return exactly(found.seconds)
    samples, program, machine = question.samples(request.data_size), *_subject(question)
    if samples is None:
        return Range()
    compute = compute_time(program, machine, request.world_size, samples, question.baseline)
    baseline = question.baseline
    if baseline is not None and baseline.ranks > request.world_size:
        # The measured step also communicated.
        compute = Range(low=0.0, high=compute.high)
    communication = communication_time(request, sent, program, machine)
    waits = slowest_rank(baseline.ranks, request.world_size) if baseline is not None else 0.0
    return step_time(compute, communication, waits, idle_share(request) or 0.0)


def _subject(question: Question) -> tuple[ProgramSize, MachineSize]:
    return question.program, question.machine


def _with_speedup(row: AdviceRow, question: Question) -> AdviceRow:
    """Add speedup and efficiency against the baseline, by the rate of samples."""
    baseline, own = question.baseline, row.samples
    if baseline is None or own is None or baseline.batch is None:
        return row
    samples = question.samples(row.ranks) or 0.0
    ratio = samples / baseline.batch * baseline.seconds
    low = 0.0 if row.step.high is None else ratio / row.step.high
    high = ratio / row.step.low if row.step.low > 0 else None
    speedup = Range(low=low, high=high)
    return replace(row, speedup=speedup, efficiency=speedup.times(baseline.ranks / row.ranks))


def _with_cost(row: AdviceRow, question: Question) -> AdviceRow:
    """Add the time to the end of the training, and its GPU-hours."""
    total, samples = _total_samples(question), question.samples(row.ranks)
    if total is None or not samples:
        return row
    end = row.step.times(total / samples)
    return replace(row, end=end, gpu_hours=end.times(row.ranks / _HOUR))


def _with_change(row: AdviceRow, question: Question) -> AdviceRow:
    """Add the smallest change with which a row certainly fits, if it does not as it is."""
    if row.fits not in ("no", "perhaps"):
        return row
    return replace(row, change=_smallest_change(row, question))


def _total_samples(question: Question) -> float | None:
    steps, samples = question.program.steps, question.samples(question.sizes[0])
    return None if steps is None or samples is None else steps * samples


def _smallest_change(row: AdviceRow, question: Question) -> str:
    """Return the smallest change with which a row that does not fit does: `micro-batches of 4`.

    First more micro-batches of a step, then all activations computed again, then both; an empty
    string if nothing of that suffices.
    """
    if row.samples is None:
        return ""
    request = request_of(row.strategy, row.ranks, question)
    sizes = _halves(row.samples / request.microbatches)
    for checkpointing in ("none", "full"):
        for size in sizes if checkpointing == "full" else sizes[1:]:
            program = replace(question.program, checkpointing=checkpointing)
            changed = request_of(row.strategy, row.ranks, replace(question, program=program))
            memory = _memory(changed, program, question, size)
            if fits(memory, question.machine) == "yes":
                return _change(size, sizes[0], checkpointing)
    return ""


def _halves(samples: float) -> Sequence[float]:
    found = [samples]
    while found[-1] >= 2:
        found.append(float(int(found[-1] // 2)))
    return found


def _change(size: float, before: float, checkpointing: str) -> str:
    words = [f"micro-batches of {size:g}"] if size != before else []
    words += [CHECKPOINTED] if checkpointing == "full" else []
    return " and ".join(words)
