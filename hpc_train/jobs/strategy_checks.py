"""Which ranks, models, meshes and batches each strategy of the reference trainer accepts.

Imports the standard library only, because the trainer inside the job uses this module too.
"""

from collections.abc import Callable
from math import prod

from hpc_train.jobs.training_strategies import (
    GPT_SHAPES,
    MESHES,
    SCHEDULES,
    TrainingRequest,
    parts_of,
)


def strategy_problem(request: TrainingRequest) -> str | None:
    """Return why the strategy cannot run, and what would fit, in one sentence; None: it can."""
    for check in _CHECKS:
        problem = check(request)
        if problem is not None:
            return f"{request.strategy} {problem}"
    return None


def batch_problem(request: TrainingRequest, batch_size: int) -> str | None:
    """Return why the batch of a data-parallel rank is no whole number of micro-batches, or None."""
    count = request.microbatches
    if batch_size % count == 0:
        return None
    below = batch_size // count * count
    fitting = " or ".join(str(size) for size in (below, below + count) if size)
    return (
        f"{request.strategy} divides {batch_size} samples into {count} equal micro-batches, "
        f"which they do not fill; use {fitting} samples"
    )


def _ranks(request: TrainingRequest) -> str | None:
    name, world = request.strategy, request.world_size
    if name in ("single", "dp") and world > 1:
        many = "ddp" if name == "single" else "ddp, which is faster"
        return f"runs in one process, but the job has {world} ranks; use 1 rank or {many}"
    if name in ("pipeline", "naive") and world < 2:
        return "places the layers on several ranks, but the job has 1; use 2 or more, or single"
    return None


def _device(request: TrainingRequest) -> str | None:
    if request.strategy != "dp" or request.device != "cpu":
        return None
    return "copies the model to several GPUs of one process and has no effect on a CPU; use ddp"


def _mesh(request: TrainingRequest) -> str | None:
    names, mesh, world = MESHES.get(request.strategy), request.mesh, request.world_size
    if names is None:
        return "has no mesh of two dimensions; leave mesh out" if mesh else None
    pairs = [(a, world // a) for a in range(1, world + 1) if world % a == 0]
    fitting = " or ".join(f"{a},{b}" for a, b in pairs)
    if len(mesh) not in (0, 2):
        return f"needs a mesh of two sizes, {' and '.join(names)}, not {len(mesh)}; use {fitting}"
    sizes = tuple(request.sizes.values())
    if prod(sizes) != world:
        shown = " x ".join(map(str, sizes))
        return f"needs {prod(sizes)} ranks for a mesh of {shown}, not {world}; use mesh {fitting}"
    return None


def _tensor(request: TrainingRequest) -> str | None:
    if "tensor" not in request.strategy:
        return None
    shape = GPT_SHAPES.get(request.model)
    if shape is None:
        return f"divides linear layers, but {request.model} has convolutions; {_GPT_OR_FSDP}"
    size = request.world_size if request.strategy == "tensor" else request.sizes["tensor"]
    fitting = [
        n for n in range(1, shape.heads + 1) if not shape.heads % n and not shape.context % n
    ]
    if size in fitting:
        return None
    return (
        f"divides the {shape.heads} attention heads and {shape.context} tokens of {request.model} "
        f"equally, not by {size}; use {', '.join(map(str, fitting))} ranks in a group"
    )


def _context(request: TrainingRequest) -> str | None:
    if request.strategy != "context":
        return None
    shape = GPT_SHAPES.get(request.model)
    if shape is None:
        return f"divides the tokens of a sequence, but {request.model} has none; {_GPT_OR_FSDP}"
    if shape.context % request.world_size == 0:
        return None
    near = max(n for n in range(1, request.world_size) if shape.context % n == 0)
    return (
        f"divides the {shape.context} tokens of {request.model} equally, not by "
        f"{request.world_size}; use {near} ranks"
    )


def _stages(request: TrainingRequest) -> str | None:
    if request.strategy.startswith("pipeline+") and request.pipeline_ranks < 2:
        return "needs 2 or more stages, but its mesh has 1; use fsdp or ddp for data alone"
    parts, stages = parts_of(request.model), request.stages
    if stages <= parts:
        return None
    each = stages // request.pipeline_ranks
    return (
        f"cuts the model into {stages} stages, but {request.model} has {parts} parts; "
        f"use {parts // each} stage ranks or fewer, or a deeper model"
    )


def _microbatches(request: TrainingRequest) -> str | None:
    if request.strategy == "naive" and (request.accumulate or 1) > 1:
        return "moves the whole batch from rank to rank; for micro-batches use pipeline"
    if not request.strategy.startswith("pipeline"):
        return None
    least = request.stages if request.schedule == "DualPipeV" else request.pipeline_ranks
    whole = request.schedule in ("Interleaved1F1B", "InterleavedZeroBubble")
    count = request.microbatches
    if count < least or (whole and count % least):
        kind = "a multiple of" if whole else "at least"
        return (
            f"with the schedule {request.schedule} needs {kind} {least} micro-batches, "
            f"not {count}; set accumulate to {least}"
        )
    return None


def _precision(request: TrainingRequest) -> str | None:
    name = request.strategy
    divided = name.startswith(("pipeline", "naive")) or "tensor" in name
    if request.precision != "fp16" or not divided:
        return None
    return "does not scale its loss, without which small gradients are zero in fp16; use bf16"


def _blocks(request: TrainingRequest) -> str | None:
    """Layers that are recomputed or compiled, one by one."""
    for key in ("checkpointing", "compile"):
        if getattr(request, key) != "none" and request.model == "cnn":
            return (
                f"with {key} works on the blocks of a model, but {request.model} has none; use the "
                f"model gpt-tiny, or leave {key} out"
            )
    if "tensor" in request.strategy and (request.compile, request.checkpointing) == (
        "block",
        "full",
    ):
        return "does not compile blocks that are computed again; use checkpointing selective"
    pipeline, kind = request.strategy.startswith("pipeline"), SCHEDULES[request.schedule]
    once, instead = "", ""
    if request.checkpointing == "selective":
        once, instead = "selective checkpointing does not", "use checkpointing full"
    if request.compile != "none":
        once, instead = "compiled blocks do not", "leave compile out"
    if not once or not pipeline or not kind.splits_backward:
        return None
    fitting = [name for name, other in SCHEDULES.items() if not other.splits_backward]
    return (
        f"with the schedule {request.schedule} computes gradients of inputs and weights apart, "
        f"which {once}; {instead}, or use {', '.join(fitting)}"
    )


_GPT_OR_FSDP = "use the model gpt-tiny, or the strategy fsdp"
_CHECKS: tuple[Callable[[TrainingRequest], str | None], ...] = (
    _ranks,
    _device,
    _mesh,
    _tensor,
    _context,
    _stages,
    _microbatches,
    _precision,
    _blocks,
)
