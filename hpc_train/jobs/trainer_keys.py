"""TrainerOptions: the keys of `trainer` in a job."""

from typing import Annotated

from msgspec import Meta

from hpc_train.base.value import Value
from hpc_train.jobs.training_strategies import (
    CheckpointingName,
    CompileName,
    ModelName,
    OptimizerName,
    PrecisionName,
    ScheduleName,
    StrategyName,
)

_Count = Annotated[int, Meta(ge=1, le=4096)]
_Steps = Annotated[int, Meta(ge=0, le=10**9)]
_Workers = Annotated[int, Meta(ge=0, le=1024)]
_Norm = Annotated[float, Meta(gt=0, le=1e12)]
_Mesh = Annotated[
    str,
    Meta(
        pattern=r"^[1-9][0-9]{0,4},[1-9][0-9]{0,4}$(?!\n)",
        description="Ranks in the two dimensions of hsdp and of compositions, such as 2,4.",
    ),
]


class TrainerOptions(Value, frozen=True, kw_only=True):
    """Options of hpc_train.trainer.train; they are added to the command."""

    strategy: Annotated[
        StrategyName | None, Meta(description="How the ranks share the work; default: ddp.")
    ] = None
    model: Annotated[ModelName | None, Meta(description="The network; default: cnn.")] = None
    precision: Annotated[
        PrecisionName | None,
        Meta(description="Type of numbers in operations; default: fp32."),
    ] = None
    optimizer: Annotated[
        OptimizerName | None, Meta(description="Default: sgd, with momentum 0.9.")
    ] = None
    mesh: Annotated[_Mesh | None, Meta(description="Default: 2 in the last dimension.")] = None
    schedule: Annotated[
        ScheduleName | None, Meta(description="Order of work in a pipeline; default: 1F1B.")
    ] = None
    accumulate: Annotated[
        _Count | None, Meta(description="Micro-batches of a step; default: 1, in a pipeline more.")
    ] = None
    data: Annotated[
        str | None,
        Meta(
            description="digits, synthetic, synthetic-imagenet, docs or a path."
            " Default: by the model."
        ),
    ] = None
    workers: Annotated[
        _Workers | None, Meta(description="Processes that read data for each rank; default: 0.")
    ] = None
    clip_norm: Annotated[
        _Norm | None, Meta(description="Largest norm of the gradients, above 0; default: any.")
    ] = None
    warmup_steps: Annotated[
        _Steps | None,
        Meta(description="Steps in which the learning rate grows linearly; default: 0."),
    ] = None
    profile_steps: Annotated[
        _Steps | None,
        Meta(description="Steps, from the third on, that are profiled; default: 0."),
    ] = None
    checkpointing: Annotated[
        CheckpointingName | None,
        Meta(description="Activations computed again in the backward pass; default: none."),
    ] = None
    compile: Annotated[
        CompileName | None, Meta(description="block: compile each block; default: none.")
    ] = None
