"""Memory of the states, bytes sent in a step and idle share of each strategy, by formulas.

Sources: ZeRO (Rajbhandari et al., SC20, sections 5 and 7), Megatron-LM (Narayanan et al., SC21,
section 3), and for the pipelines without a bubble Qi et al., 2024 (arXiv 2401.10241). A ring sends
(n-1)/n of an array in a gather or scatter; gloo's reduce-scatter sends as much as its all-reduce.
"""

from hpc_train.base.value import Value
from hpc_train.jobs.training_strategies import GPT_SHAPES, SCHEDULES, TrainingRequest

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
