"""Strategy and program -> the memory of a rank by kind, within bounds.

Activations of a transformer block in bytes per sample, token and width: 32 in bf16 and 64 in fp32
with a fused attention, 34 with dropout; with full checkpointing only its input (Korthikanti et al.,
arXiv 2205.05198). Logits are kept in the type of the operations and twice in fp32.
"""

from hpc_train.advice.advice import Range, RankMemory, exactly
from hpc_train.advice.program import ProgramSize, block_parameters
from hpc_train.jobs.strategies import (
    GptShape,
    TrainingRequest,
    TrainingSize,
    gradient_bytes,
    state_bytes,
)

GIB = 2.0**30
# CUDA's context, its libraries, and for several ranks the buffers of NCCL.
_CONTEXT_GIB, _NCCL_GIB = (0.4, 1.5), (0.6, 3.5)
_HALF = frozenset({"bf16", "fp16"})
# The resident set of a process with torch, and the buffers of gloo (Linux, torch 2.13).
_CPU_GIB = (0.25, 0.6)
# What allocators and temporary arrays need beyond the formula.
_MORE = 1.15


def rank_memory(
    request: TrainingRequest, program: ProgramSize, micro_batch: float
) -> RankMemory | None:
    """Return the memory of the rank that needs most; None without the number of parameters.

    `micro_batch` are the samples of one forward pass of a rank.
    """
    if program.parameters is None:
        return None
    size = training_size(program, 1)
    if program.shape is None and program.activation_bytes is not None:
        activations, logits = _of_counted(request, program, micro_batch), exactly(0.0)
    else:
        activations, logits = _of_samples(request, program.shape, micro_batch)
    return RankMemory(
        states=exactly(state_bytes(request, size)),
        gathered=_gathered(request, program, size),
        buckets=_buckets(request, program, size),
        activations=activations,
        logits=logits,
        context=_context(request),
        late_gradients=_late_gradients(request, program, size),
    )


def training_size(program: ProgramSize, batch: float, backend: str = "nccl") -> TrainingSize:
    """Return what the formulas of traffic and states depend on; `batch` are a step's samples."""
    each = program.parameter_bytes or (8.0 if program.precision == "fp64" else 4.0)
    return TrainingSize(
        parameters=program.parameters or 0,
        optimizer=program.optimizer,
        batch=int(batch),
        backend=backend,
        gathered=min(each, 2.0) if program.precision in _HALF else each,
        trained=program.trained_parameters,
        parameter_bytes=each,
        trained_bytes=program.trained_bytes or each,
    )


def _late_gradients(request: TrainingRequest, program: ProgramSize, size: TrainingSize) -> float:
    """Return the gradients that a step makes anew; micro-batches add to those of the first.

    The buckets of ddp are kept, and in our trainer the gradients are views of them.
    """
    kept = program.model is not None and request.strategy in ("ddp", "zero1")
    # The whole gradients of earlier micro-batches are counted as gathered.
    added = request.microbatches > 1 and not _is_sharded(request)
    return 0.0 if kept or added else gradient_bytes(request, size)


def _gathered(request: TrainingRequest, program: ProgramSize, size: TrainingSize) -> Range:
    """Return what fsdp has whole: two groups, or until the last micro-batch all layers.

    Our trainer keeps parameters and gradients whole until then; another program may.
    """
    if not _is_sharded(request):
        return exactly(0.0)
    groups = _groups(request, program, size)
    if request.microbatches == 1:
        return groups
    whole = size.gathered * size.parameters + size.gradients
    return Range(low=whole if program.model is not None else groups.low, high=whole)


def _is_sharded(request: TrainingRequest) -> bool:
    return request.strategy in ("fsdp", "hsdp")


def _groups(request: TrainingRequest, program: ProgramSize, size: TrainingSize) -> Range:
    """Return what fsdp has whole at once: two neighbouring groups, and a group's gradients.

    Of a GPT, the largest groups are the embedding, the output and each block. The gradients of a
    group are whole until it is reduced, and so is the copy that the reduce-scatter sends
    (torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py, foreach_reduce); the peak may be at
    another moment of the step.
    """
    shape, parameters = program.shape, float(size.parameters)
    if shape is None and program.gathered_parameters is not None:
        return exactly(float(size.gathered * program.gathered_parameters))
    if shape is None:
        return Range(low=0.0, high=parameters * size.gathered)
    block = block_parameters(shape.width)
    largest = max(block, (shape.vocabulary + shape.context) * shape.width)
    least = size.gathered * (block + largest)
    return Range(low=least, high=least + (size.gathered + size.trained_bytes) * largest)


def _buckets(request: TrainingRequest, program: ProgramSize, size: TrainingSize) -> Range:
    """Return the copies of gradients of DDP without `gradient_as_bucket_view`, which ours sets."""
    if request.strategy not in ("ddp", "zero1") or program.model is not None:
        return exactly(0.0)
    return Range(low=0.0, high=size.gradients)


def _of_samples(
    request: TrainingRequest, shape: GptShape | None, samples: float
) -> tuple[Range, Range]:
    """Return activations and logits."""
    if shape is None:
        return Range(), Range()
    tokens = samples * shape.context
    whole = tokens * shape.width * shape.blocks
    each = 32.0 if request.precision in _HALF else 64.0
    if request.checkpointing == "none":
        activations = Range(low=each * whole, high=each * whole * _MORE)
    else:
        # The input of each block, and all activations of the block that is computed again.
        inputs = whole * (2.0 if request.precision in _HALF else 4.0)
        least = inputs + each * whole / shape.blocks
        most = least if request.checkpointing == "full" else each * whole
        activations = Range(low=least, high=most * _MORE)
    vocabulary = tokens * shape.vocabulary
    return activations, Range(low=4.0 * 2 * vocabulary, high=4.0 * 3 * vocabulary)


def _of_counted(request: TrainingRequest, program: ProgramSize, samples: float) -> Range:
    """Return the activations of a counted model.

    Autocast keeps some of an fp32 model in half the bytes; checkpointing keeps at least nothing.
    """
    whole = samples * (program.activation_bytes or 0.0)
    halved = request.precision in _HALF and (program.parameter_bytes or 4) > 2
    least = whole / 2 if halved else whole
    return Range(low=0.0 if request.checkpointing != "none" else least, high=whole * _MORE)


def _context(request: TrainingRequest) -> Range:
    if request.device != "cuda":
        return Range(low=_CPU_GIB[0] * GIB, high=_CPU_GIB[1] * GIB)
    least, most = _CONTEXT_GIB
    if request.world_size > 1:
        least, most = least + _NCCL_GIB[0], most + _NCCL_GIB[1]
    return Range(low=least * GIB, high=most * GIB)
