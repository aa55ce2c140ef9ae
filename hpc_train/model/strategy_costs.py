"""Memory of the states, bytes sent in a step and idle share of each strategy, by formulas.

Sources: ZeRO (Rajbhandari et al., SC20, sections 5 and 7), Megatron-LM (Narayanan et al., SC21,
section 3), and for the pipelines without a bubble Qi et al., 2024 (arXiv 2401.10241). A ring sends
(n-1)/n of an array in a gather or scatter; gloo's reduce-scatter sends as much as its all-reduce.
"""

from hpc_train.model.training_strategies import GPT_SHAPES, SCHEDULES, TrainingRequest
from hpc_train.model.value import Value

# fp32 values of a parameter: itself, its gradient, and those of the optimiser.
_VALUES = {"sgd": 3, "adamw": 4}
OPTIMIZERS = tuple(_VALUES)
_BYTES = 4


class TrainingSize(Value, frozen=True, kw_only=True):
    """What the costs depend on; `batch` is the global batch in samples.

    `gathered` are the bytes of a parameter that fsdp gathers: 4, or 2 in bf16 and fp16.
    """

    parameters: int
    optimizer: str
    batch: int
    backend: str = "gloo"
    gathered: int = 4


def state_bytes(request: TrainingRequest, size: TrainingSize) -> float:
    """Return the bytes of parameters, gradients and optimiser state: the mean over the ranks."""
    whole, values = _BYTES * size.parameters, _VALUES[size.optimizer]
    name, ranks = request.strategy, request.world_size
    if name == "zero1":
        return whole * (2 + (values - 2) / ranks)
    if name == "hsdp":
        return whole * values / request.sizes["shard"]
    if name == "tensor":
        shared = _BYTES * _not_divided(request.model)
        return values * ((whole - shared) / ranks + shared)
    if name in ("fsdp", "fsdp+tensor", "pipeline+fsdp"):
        return whole * values / ranks
    return whole * values / request.pipeline_ranks


def gradient_bytes(request: TrainingRequest, size: TrainingSize) -> float:
    """Return the bytes of gradients among those of `state_bytes`: the mean over the ranks."""
    if request.strategy == "zero1":
        return float(_BYTES * size.parameters)
    return state_bytes(request, size) / _VALUES[size.optimizer]


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
    whole, ranks = _BYTES * size.parameters, request.world_size
    if request.strategy in ("single", "ddp", "zero1"):
        arrays = {"single": 0, "ddp": 2, "zero1": 3}
        return arrays[request.strategy] * _share(ranks) * whole
    gathered = size.parameters * (2 * size.gathered + _BYTES * _scatter(size))
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
        gradients = 2 * _share(ranks) * _BYTES * size.parameters
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
