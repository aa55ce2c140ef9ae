"""Strategies of the reference trainer: names, meshes, and which model, ranks and batch each needs.

Imports the standard library only, because the trainer inside the job uses this module too.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Literal, NamedTuple, get_args


class GptShape(NamedTuple):
    """Blocks, heads, width of a token, tokens of a sample, and entries of the vocabulary."""

    blocks: int
    heads: int
    width: int
    context: int
    vocabulary: int


# The vocabulary of the tiny ones is that of bytes; 50304 is GPT-2's, rounded up to 128 as usual.
GPT_SHAPES = {
    "gpt-tiny": GptShape(6, 4, 32, 32, 256),
    "gpt-mini": GptShape(6, 8, 192, 128, 256),
    "gpt-124m": GptShape(12, 12, 768, 1024, 50304),
    "gpt-1.5b": GptShape(48, 25, 1600, 1024, 50304),
}
CNN_PARTS = 4  # three convolutions and the classifier


class PipelineSchedule(NamedTuple):
    """Stages on each rank; `v_shaped`: rank r of p has the stages r and 2p-1-r."""

    stages_per_rank: int
    v_shaped: bool = False


# Names of torch.distributed.pipelining.
SCHEDULES = {
    "GPipe": PipelineSchedule(1),
    "1F1B": PipelineSchedule(1),
    "LoopedBFS": PipelineSchedule(2),
    "Interleaved1F1B": PipelineSchedule(2),
    "InterleavedZeroBubble": PipelineSchedule(2),
    "ZBVZeroBubble": PipelineSchedule(2, v_shaped=True),
    "DualPipeV": PipelineSchedule(2, v_shaped=True),
}
StrategyName = Literal[
    "single",
    "dp",
    "ddp",
    "zero1",
    "fsdp",
    "hsdp",
    "tensor",
    "context",
    "pipeline",
    "naive",
    "fsdp+tensor",
    "pipeline+ddp",
    "pipeline+fsdp",
]
ModelName = Literal["cnn", "gpt-tiny", "gpt-mini", "gpt-124m", "gpt-1.5b"]
STRATEGIES: tuple[StrategyName, ...] = get_args(StrategyName)
MODELS: tuple[ModelName, ...] = get_args(ModelName)
# The two dimensions of a mesh, the one with neighbouring ranks last.
MESHES: dict[str, tuple[str, str]] = {
    "hsdp": ("replicate", "shard"),
    "fsdp+tensor": ("data", "tensor"),
    "pipeline+ddp": ("stage", "data"),
    "pipeline+fsdp": ("stage", "data"),
}
_DATA = frozenset({"data", "replicate", "shard"})


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRequest:
    """What decides whether a strategy can run; an empty device is not known yet.

    `accumulate` is the number of micro-batches of a step; None is 1, and one for each stage in a
    pipeline. `mesh` has the sizes of the dimensions of `MESHES`, empty: the default.
    """

    strategy: str
    model: str
    world_size: int
    device: str = ""
    mesh: tuple[int, ...] = ()
    schedule: str = "1F1B"
    accumulate: int | None = None

    @property
    def sizes(self) -> dict[str, int]:
        """Dimensions of the mesh and their sizes; by default the last one has two ranks."""
        names = MESHES[self.strategy]
        default = (self.world_size // 2, 2) if self.world_size > 1 else (1, 1)
        return dict(zip(names, self.mesh or default, strict=True))

    @property
    def data_size(self) -> int:
        """Into how many parts the global batch is divided."""
        if self.strategy in MESHES:
            return prod(size for name, size in self.sizes.items() if name in _DATA)
        return self.world_size if self.strategy in ("ddp", "zero1", "fsdp") else 1

    @property
    def pipeline_ranks(self) -> int:
        """Ranks with different layers of the model; 1 where each rank has all layers."""
        if self.strategy in ("pipeline", "naive"):
            return self.world_size
        return self.sizes["stage"] if self.strategy.startswith("pipeline+") else 1

    @property
    def stages(self) -> int:
        """Parts into which the layers of the model are divided."""
        if not self.strategy.startswith("pipeline"):
            return self.pipeline_ranks
        return self.pipeline_ranks * SCHEDULES[self.schedule].stages_per_rank

    @property
    def microbatches(self) -> int:
        """Micro-batches of a step on each data-parallel rank."""
        return self.accumulate or (self.stages if self.strategy.startswith("pipeline") else 1)


def parts_of(model: str) -> int:
    """Return the number of consecutive parts into which the layers of a model can be cut."""
    return CNN_PARTS if model == "cnn" else GPT_SHAPES[model].blocks + 2


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
    fitting = ", ".join(f"{a},{b}" for a, b in pairs)
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


_GPT_OR_FSDP = "use the model gpt-tiny, or the strategy fsdp"
_CHECKS: tuple[Callable[[TrainingRequest], str | None], ...] = (
    _ranks,
    _device,
    _mesh,
    _tensor,
    _context,
    _stages,
    _microbatches,
)
