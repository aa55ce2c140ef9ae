"""Strategies of the reference trainer: names, meshes, and which model, ranks and batch each needs.

Imports the standard library only, because the trainer inside the job uses this module too.
"""

from dataclasses import dataclass
from math import prod
from typing import Literal, NamedTuple, get_args

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
# The strategy of one process; a launcher has the same name.
ONE_PROCESS: StrategyName = "single"
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
    def tensor_ranks(self) -> int:
        """Ranks that divide each layer among them."""
        if self.strategy == "tensor":
            return self.world_size
        return self.sizes["tensor"] if self.strategy == "fsdp+tensor" else 1

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
