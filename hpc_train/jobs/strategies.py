"""The strategies of the reference trainer: what each needs, accepts, stores and sends."""

from collections.abc import Callable
from math import prod
from typing import Literal, NamedTuple, get_args

from hpc_train.base.values import Value

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
ModelName = Literal["cnn", "resnet50", "gpt-tiny", "gpt-mini", "gpt-124m", "gpt-1.5b"]
PrecisionName = Literal["fp32", "bf16", "fp16", "fp64"]
OptimizerName = Literal["sgd", "adamw"]
CheckpointingName = Literal["none", "full", "selective"]
CompileName = Literal["none", "block"]
ScheduleName = Literal[
    "GPipe",
    "1F1B",
    "LoopedBFS",
    "Interleaved1F1B",
    "InterleavedZeroBubble",
    "ZBVZeroBubble",
    "DualPipeV",
]


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
# Three convolutions and the classifier; the stem, 16 blocks and the classifier.
_PARTS = {"cnn": 4, "resnet50": 18}


class PipelineSchedule(NamedTuple):
    """Stages on each rank; `v_shaped`: rank r of p has the stages r and 2p-1-r.

    `splits_backward`: the gradients of inputs and those of weights at different times.
    """

    stages_per_rank: int
    v_shaped: bool = False
    splits_backward: bool = False


# Names of torch.distributed.pipelining.
SCHEDULES: dict[str, PipelineSchedule] = {
    "GPipe": PipelineSchedule(1),
    "1F1B": PipelineSchedule(1),
    "LoopedBFS": PipelineSchedule(2),
    "Interleaved1F1B": PipelineSchedule(2),
    "InterleavedZeroBubble": PipelineSchedule(2, splits_backward=True),
    "ZBVZeroBubble": PipelineSchedule(2, v_shaped=True, splits_backward=True),
    "DualPipeV": PipelineSchedule(2, v_shaped=True, splits_backward=True),
}
STRATEGIES: tuple[str, ...] = get_args(StrategyName)
MODELS: tuple[str, ...] = get_args(ModelName)
PRECISIONS: tuple[str, ...] = get_args(PrecisionName)
TRAINER_OPTIMIZERS: tuple[str, ...] = get_args(OptimizerName)
CHECKPOINTING: tuple[str, ...] = get_args(CheckpointingName)
COMPILE: tuple[str, ...] = get_args(CompileName)
# The first steps open connections, compile, and choose algorithms.
FIRST_PROFILED = 3
# The two dimensions of a mesh, the one with neighbouring ranks last.
MESHES: dict[str, tuple[str, str]] = {
    "hsdp": ("replicate", "shard"),
    "fsdp+tensor": ("data", "tensor"),
    "pipeline+ddp": ("stage", "data"),
    "pipeline+fsdp": ("stage", "data"),
}
_DATA = frozenset({"data", "replicate", "shard"})


class TrainingRequest(Value, frozen=True, kw_only=True):
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
    precision: str = "fp32"
    checkpointing: str = "none"
    compile: str = "none"

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
    return _PARTS.get(model) or GPT_SHAPES[model].blocks + 2


def unprofiled(profile_steps: int, steps: int) -> str | None:
    """Return why a training of `steps` has fewer steps to profile; None if it has enough."""
    last = FIRST_PROFILED + profile_steps - 1
    if not profile_steps or last <= steps:
        return None
    most = max(0, steps - FIRST_PROFILED + 1)
    return (
        f"{profile_steps} steps from step {FIRST_PROFILED} on are to be profiled, but the training "
        f"has {steps}; at most {most}"
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
        f"{request.strategy} cannot divide {batch_size} samples into {count} equal micro-batches; "
        f"use {fitting} samples"
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


# Values that an optimiser keeps of a trained parameter, in its type: sgd with momentum.
_KEPT = {
    "sgd": 1, "adamw": 2, "adam": 2, "lamb": 2, "lion": 1, "lars": 1, "muon": 1, "rmsprop": 1,
    "adagrad": 1, "adafactor": 0, "adamw8bit": 2,
}  # fmt: skip
OPTIMIZERS = tuple(_KEPT)
_BYTES = 4


class TrainingSize(Value, frozen=True, kw_only=True):
    """What the costs depend on; `batch` is the global batch in samples.

    `trained` of the parameters have gradients, None: all. `parameter_bytes` are those of a
    parameter, `trained_bytes` those of one with a gradient, and `gathered` those that fsdp gathers
    of one.
    """

    parameters: int
    optimizer: str
    batch: int
    backend: str = "gloo"
    gathered: float = _BYTES
    trained: int | None = None
    parameter_bytes: float = _BYTES
    trained_bytes: float = _BYTES

    @property
    def gradients(self) -> float:
        """The bytes of all gradients."""
        return self.trained_bytes * (self.parameters if self.trained is None else self.trained)

    @property
    def optimizer_bytes(self) -> float:
        """The bytes of the state of the optimiser."""
        each = 1 / self.trained_bytes if self.optimizer == "adamw8bit" else 1.0
        return self.gradients * _KEPT[self.optimizer] * each

    @property
    def states(self) -> float:
        """The bytes of all parameters, gradients and optimiser state."""
        return self.parameters * self.parameter_bytes + self.gradients + self.optimizer_bytes


def state_bytes(request: TrainingRequest, size: TrainingSize) -> float:
    """Return the bytes of parameters, gradients and optimiser state: the mean over the ranks."""
    whole, name, ranks = size.states, request.strategy, request.world_size
    if name == "zero1":
        return whole - size.optimizer_bytes * _share(ranks)
    if name == "hsdp":
        return whole / request.sizes["shard"]
    if name == "tensor":
        shared = whole * _not_divided(request.model) / size.parameters
        return (whole - shared) / ranks + shared
    if name in ("fsdp", "fsdp+tensor", "pipeline+fsdp"):
        return whole / ranks
    return whole / request.pipeline_ranks


def gradient_bytes(request: TrainingRequest, size: TrainingSize) -> float:
    """Return the bytes of gradients among those of `state_bytes`: the mean over the ranks."""
    if request.strategy == "zero1":
        return size.gradients
    return state_bytes(request, size) * size.gradients / size.states


def _not_divided(model: str) -> int:
    """Return the parameters that each tensor rank has: normalisations, and biases of rows."""
    shape = GPT_SHAPES[model]
    return (6 * shape.blocks + 2) * shape.width


def sent_bytes(request: TrainingRequest, size: TrainingSize) -> float | None:
    """Return the bytes that a rank sends in a step: the mean over the ranks; None: no formula."""
    if request.strategy in ("single", "ddp", "zero1", "fsdp", "hsdp"):
        return _of_parameters(request, size)
    if request.model not in GPT_SHAPES or "+" in request.strategy or request.strategy == "dp":
        return None
    return _of_activations(request, size)


def _of_parameters(request: TrainingRequest, size: TrainingSize) -> float:
    whole, ranks = size.gradients, request.world_size
    if request.strategy in ("single", "ddp", "zero1"):
        arrays = {"single": 0, "ddp": 2, "zero1": 3}
        return arrays[request.strategy] * _share(ranks) * whole
    gathered = 2 * size.parameters * size.gathered + whole * _scatter(size)
    if request.strategy == "fsdp":
        return _share(ranks) * gathered
    shard, copies = request.sizes["shard"], request.sizes["replicate"]
    return _share(shard) * gathered + 2 * _share(copies) * whole / shard


def _of_activations(request: TrainingRequest, size: TrainingSize) -> float:
    shape, ranks = GPT_SHAPES[request.model], request.world_size
    activation = _BYTES * size.batch * shape.context * shape.width
    exchanged = (1 + _scatter(size)) * _share(ranks) * activation
    if request.strategy == "tensor":
        # Of the embedding: the tokens, and the positions, which all samples share.
        return (4 * shape.blocks + 2 + 1 / size.batch) * exchanged
    if request.strategy == "context":
        gradients = 2 * _share(ranks) * size.gradients
        return gradients + 2 * shape.blocks * exchanged
    return 2 * _boundaries(request) / ranks * activation


def _scatter(size: TrainingSize) -> int:
    return 2 if size.backend == "gloo" else 1


def _share(ranks: int) -> float:
    return (ranks - 1) / ranks


def _boundaries(request: TrainingRequest) -> int:
    """Return the number of neighbouring stages on different ranks."""
    v_shaped = request.strategy == "pipeline" and SCHEDULES[request.schedule].v_shaped
    return request.stages - (2 if v_shaped else 1)


def idle_share(request: TrainingRequest) -> float | None:
    """Return the share of a step, 0..1, in which a pipeline's rank waits; None for others.

    The stages are equal, and a backward pass takes twice as long as a forward pass.
    """
    ranks = request.pipeline_ranks
    if ranks == 1:
        return None
    if request.strategy == "naive":
        return _share(ranks)
    waiting, chunks = ranks - 1, SCHEDULES[request.schedule].stages_per_rank
    work = chunks * request.microbatches
    if request.schedule in ("InterleavedZeroBubble", "ZBVZeroBubble"):
        return waiting / (3 * work + waiting)
    if request.schedule == "DualPipeV":
        return 2 * waiting / (3 * work + 2 * waiting)
    return waiting / (work + waiting)
