"""Program and machine -> one row for each strategy and size: memory, traffic, time, cost."""

import math
from collections.abc import Sequence

from msgspec.structs import replace

from hpc_train.advice.advice import (
    DATA_PARALLEL,
    AdviceRow,
    MeasuredStep,
    MemoryFit,
    Question,
    Range,
    RankMemory,
    exactly,
    problem_of,
    request_of,
)
from hpc_train.advice.machine import MachineSize
from hpc_train.advice.program import ProgramSize
from hpc_train.advice.rank_memory import GIB, rank_memory, training_size
from hpc_train.advice.step_time import compute_time, slowest_rank, step_forecast, step_time
from hpc_train.jobs.strategies import TrainingRequest, sent_bytes

# The allocator keeps blocks that it cannot use.
USABLE = 0.95
CHECKPOINTED = "activation checkpointing"
# A forward pass is a third of a step, and is done twice.
_FORWARD_AGAIN = 4 / 3
_HOUR = 3600.0
DATA_KEEPS_UP = "data that keeps up"


def make_rows(question: Question) -> tuple[list[AdviceRow], dict[str, str]]:
    """Return the rows, and why a strategy has none at any size."""
    rows: list[AdviceRow] = []
    refused: dict[str, str] = {}
    for ranks in question.sizes:
        for name in DATA_PARALLEL:
            if (ranks == 1) != (name == "single"):
                continue
            request = request_of(name, ranks, question)
            problem = problem_of(request, question)
            if problem is None:
                rows.append(_row(request, question))
                refused.pop(name, None)
            elif name not in {row.strategy for row in rows}:
                refused[name] = problem
    return rows, refused


def _row(request: TrainingRequest, question: Question) -> AdviceRow:
    batch = question.samples(request.data_size)
    row = AdviceRow(
        strategy=request.strategy,
        ranks=request.world_size,
        nodes=question.machine.nodes(request.world_size),
        batch=batch,
        samples=None if batch is None else batch / request.data_size,
        sent=_sent(request, question),
    )
    row = _with_memory(row, request, question)
    row = _with_step(row, request, question)
    of_memory, of_step = _assumed(row, question)
    row = replace(row, memory_assumes=of_memory, step_assumes=of_step)
    return _with_cost(_with_speedup(row, question), question)


def _assumed(row: AdviceRow, question: Question) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what memory and upper bound of a row rest on, as far as nothing states it."""
    program, memory, baseline = question.program, row.memory, question.baseline
    own, sources, ran = program.model is None, program.sources, _ran_here(row, question)
    of_memory, of_step = [], []
    if own and memory is not None and not ran:
        typed = program.parameter_bytes or ("precision" in sources and program.precision == "fp32")
        words = [] if typed else ["fp32 parameters"]
        words += [program.optimizer] if "optimizer" not in sources else []
        of_memory += [" with ".join(words)] if words else []
    counted = program.shape is not None or program.activation_bytes is not None
    bound = memory is not None and (memory.activations.high or row.change)
    if bound and not ran and not counted:
        of_memory.append("activations in proportion to samples")
    if baseline is not None and baseline.guessed and (ran or row.step.high is not None):
        of_step.append(f"that {baseline.source} is {baseline.strategy}")
    bounded = not row.measured and row.forecast is None and row.step.high is not None
    if own and bounded and baseline is not None and row.ranks > baseline.ranks:
        of_step.append(DATA_KEEPS_UP)
        if row.strategy in ("fsdp", "hsdp") and program.blocks is None:
            of_step.append(f"at most {_GROUPS} layers")
    return tuple(of_memory), tuple(of_step)


def _sent(request: TrainingRequest, question: Question) -> float | None:
    program, batch = question.program, question.samples(request.data_size)
    if program.parameters is None:
        return None
    backend = "nccl" if question.machine.gpus_per_node else "gloo"
    return sent_bytes(request, training_size(program, batch or 1, backend))


def _with_memory(row: AdviceRow, request: TrainingRequest, question: Question) -> AdviceRow:
    """Add the memory, whether it fits, and else the smallest change with which it does."""
    if row.samples is None:
        states = rank_memory(request, question.program, 0.0)
        memory = states and replace(states, activations=Range(), logits=Range())
        return replace(row, memory=memory, fits=fits(memory, question.machine))
    memory = _memory(request, question.program, question, row.samples / request.microbatches)
    ran = _ran_here(row, question)
    row = replace(row, memory=memory, fits="yes" if ran else fits(memory, question.machine))
    if row.fits not in ("no", "perhaps"):
        return row
    return replace(row, change=_smallest_change(row, request, question))


def _ran_here(row: AdviceRow, question: Question) -> bool:
    """Whether a step of the strategy ran with as many samples of a rank, on no more ranks."""
    if row.samples is None:
        return False
    measured = [one for one in question.measured if one.here and one.strategy == row.strategy]
    sizes = (request_of(one.strategy, one.ranks, question).data_size for one in measured)
    return any(
        one.ranks <= row.ranks and (one.batch or 0.0) / size >= row.samples
        for one, size in zip(measured, sizes, strict=True)
    )


def _memory(
    request: TrainingRequest, program: ProgramSize, question: Question, micro_batch: float
) -> RankMemory | None:
    """Return the memory by formulas; the peak of a measured step replaces unknown activations.

    Without a peak, a step that ran here needed at most the memory of the GPU.
    """
    found = rank_memory(request, program, micro_batch)
    known = [one for one in question.measured if one.strategy in DATA_PARALLEL]
    steps = [one for one in known if one.batch and (one.peak_memory_gib or one.here)]
    step = max(steps, key=lambda one: bool(one.peak_memory_gib), default=None)
    if found is None or program.shape is not None or step is None or not micro_batch:
        return found
    before = request_of(step.strategy, step.ranks, question)
    states = rank_memory(before, program, 0.0)
    peak = step.peak_memory_gib or question.machine.most_gib or 0.0
    rest = peak * GIB - (states.states.low if states else 0.0)
    ratio = micro_batch / ((step.batch or 1.0) / before.data_size / before.microbatches)
    if rest <= 0:
        return found
    if not step.peak_memory_gib:
        if program.activation_bytes is not None or ratio > 1:
            return found
        return replace(found, activations=Range(high=rest * ratio), logits=exactly(0.0))
    activations = Range(low=rest * min(ratio, 1.0), high=rest * max(ratio, 1.0))
    nothing = exactly(0.0)
    rest_of_peak = {"activations": activations, "logits": nothing, "buckets": nothing}
    return replace(found, **rest_of_peak, context=nothing, late_gradients=0.0)


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
        if same and one.batch == question.samples(request.data_size):
            return one
    return None


def _with_step(row: AdviceRow, request: TrainingRequest, question: Question) -> AdviceRow:
    """Add the time of a step: measured, by a measured curve, or within bounds of the formulas."""
    found, baseline = _measured(request, question), question.baseline
    if found is not None:
        return replace(row, step=exactly(found.seconds), measured=True)
    if row.batch is None:
        return row
    program, machine = question.program, question.machine
    compute = compute_time(program, machine, row.ranks, row.batch, baseline)
    # The time that the measured step communicated may be shorter in this one.
    if baseline is not None and (
        baseline.ranks > row.ranks or (baseline.ranks > 1 and baseline.strategy != row.strategy)
    ):
        least = _least_compute(row, row.batch, baseline, question)
        compute = Range(low=least, high=compute.high)
    if CHECKPOINTED in row.change and compute.high is not None:
        compute = Range(low=compute.low, high=compute.high * _FORWARD_AGAIN)
    communication = communication_time(request, row.sent, program, machine)
    waits = slowest_rank(baseline.ranks, row.ranks) if baseline is not None else 0.0
    step = step_time(compute, communication, waits)
    forecast = None if CHECKPOINTED in row.change else step_forecast(row, question)
    if forecast is not None:
        return replace(row, step=forecast[1], forecast=forecast[0])
    return replace(row, step=step)


def _least_compute(
    row: AdviceRow, batch: float, baseline: MeasuredStep, question: Question
) -> float:
    """Return the least computation of a row: the measured step without its communication.

    By the upper bounds of communication and of the wait for the slowest rank; without them, by the
    peak of the GPU.
    """
    program, machine = question.program, question.machine
    least = compute_time(program, machine, row.ranks, batch).low
    before = request_of(baseline.strategy, baseline.ranks, question)
    communicated = communication_time(before, _sent(before, question), program, machine).high
    if communicated is None:
        return least
    computed = max(0.0, baseline.seconds - communicated)
    computed /= 1 + slowest_rank(row.ranks, baseline.ranks)
    alone = replace(baseline, seconds=computed)
    return max(least, compute_time(program, machine, row.ranks, batch, alone).low)


def _with_speedup(row: AdviceRow, question: Question) -> AdviceRow:
    """Add speedup and efficiency against the baseline, by the rate of samples."""
    baseline = question.baseline
    if baseline is None or row.batch is None or not baseline.batch:
        return row
    ratio = row.batch / baseline.batch * baseline.seconds
    low = 0.0 if row.step.high is None else ratio / row.step.high
    high = ratio / row.step.low if row.step.low > 0 else None
    speedup = Range(low=low, high=high)
    return replace(row, speedup=speedup, efficiency=speedup.times(baseline.ranks / row.ranks))


def _with_cost(row: AdviceRow, question: Question) -> AdviceRow:
    """Add the time to the end of the training, and its GPU-hours, if all sizes have one batch."""
    steps = question.program.steps
    if steps is None or question.program.global_batch is None:
        return row
    end = row.step.times(steps)
    return replace(row, end=end, gpu_hours=end.times(row.ranks / _HOUR))


def _smallest_change(row: AdviceRow, request: TrainingRequest, question: Question) -> str:
    """Return the smallest change with which a row that does not fit does: `micro-batches of 4`.

    First more micro-batches of a step, then all activations computed again, then both; an empty
    string if nothing of that suffices.
    """
    sizes = _halves((row.samples or 0.0) / request.microbatches)
    for checkpointing in ("none", "full"):
        for size in sizes if checkpointing == "full" else sizes[1:]:
            count = math.ceil((row.samples or 0.0) / size) if size != sizes[0] else None
            program = replace(
                question.program,
                checkpointing=checkpointing,
                accumulate=count or question.program.accumulate,
            )
            changed = request_of(row.strategy, row.ranks, replace(question, program=program))
            memory = _memory(changed, program, question, size)
            ran = checkpointing == "none" and _ran_here(replace(row, samples=size), question)
            if ran or fits(memory, question.machine) == "yes":
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


# Bytes that a rank sends, and links -> the seconds of a step's communication, within bounds.
#
# Nothing is faster than the links: within a node that of a GPU, between nodes the adapters of a
# node with each part sent once (a hierarchical algorithm). A healthy ring reaches at least seven
# tenths of the slower one, beside the latency of each call: 1.5 times that of NCCL's own model for
# a ring (NVIDIA/nccl, src/graph/tuning.cc: 8.4 us, 3.4 us for each hop in a node, 14 us between
# nodes).

GIGA = 1e9
_BUCKET = 25 * 2.0**20
# More than the layers of any published transformer, of which fsdp gathers one after the other.
_GROUPS = 128
_REACHED_IN_NODE, _REACHED = 0.65, 0.7
# NVLink SHARP adds inside the switch: an all-reduce sends about half; from Hopper on.
_IN_SWITCH, _IN_SWITCH_FROM = 1.75, 450.0
_US = 1e-6


def communication_time(
    request: TrainingRequest, sent: float | None, program: ProgramSize, machine: MachineSize
) -> Range:
    """Return the seconds of a step in which a rank sends `sent` bytes, if nothing else happens."""
    if request.world_size == 1 or sent == 0:
        return exactly(0.0)
    if sent is None or not machine.gpus_per_node:
        return Range()
    nodes = machine.nodes(request.world_size)
    return Range(
        low=_least(request, sent, machine, nodes), high=_most(request, sent, program, machine)
    )


def _least(request: TrainingRequest, sent: float, machine: MachineSize, nodes: int) -> float:
    ranks, link = request.world_size, machine.gpu_link
    # Each rank sends (n-1)/n of an array.
    array = sent * ranks / (ranks - 1)
    local = min(ranks, machine.gpus_per_node)
    seconds = 0.0
    if link and local > 1:
        faster = _IN_SWITCH if link >= _IN_SWITCH_FROM else 1.0
        seconds = array * (local - 1) / local / (link * faster * GIGA)
    if nodes > 1 and machine.node_link:
        between = array * (nodes - 1) / nodes / (machine.node_link * GIGA)
        seconds = max(seconds, between)
    return seconds


def _most(
    request: TrainingRequest, sent: float, program: ProgramSize, machine: MachineSize
) -> float | None:
    nodes = machine.nodes(request.world_size)
    crossed = [machine.gpu_link] if machine.gpus_per_node > 1 else []
    crossed += [machine.node_link] if nodes > 1 else []
    known = [link for link in crossed if link]
    if len(known) < len(crossed):
        return None
    slowest = min(known)
    reached = _REACHED if nodes > 1 else _REACHED_IN_NODE
    waits = _calls(request, program) * _latency(request.world_size, nodes)
    return sent / (reached * slowest * GIGA) + waits


def _calls(request: TrainingRequest, program: ProgramSize) -> float:
    """Return the collectives of a step."""
    gradients = math.ceil(training_size(program, 1).gradients / _BUCKET) + 1
    blocks = program.shape.blocks if program.shape else program.blocks or _GROUPS
    return {
        "ddp": gradients,
        "zero1": 2 * gradients,
    }.get(request.strategy, 4 * (blocks + 2))


def _latency(ranks: int, nodes: int) -> float:
    inside = 2 * (ranks - 1) - 2 * (nodes - 1)
    return 1.5 * _US * (8.4 + 3.4 * inside + 14.0 * 2 * (nodes - 1))
