"""ProgramSize: what a forecast needs to know of a training, each with its source."""

from hpc_train.base.value import Value
from hpc_train.jobs.strategies import GPT_SHAPES, GptShape, ModelName, PrecisionName

RESNET50_PARAMETERS = 25_557_032
# 4.09 billion multiplications and additions forward, for an image of 224 x 224; twice that back.
RESNET50_FLOPS = 3 * 2 * 4.09e9


class ProgramSize(Value, frozen=True, kw_only=True):
    """A training; None is unknown.

    `global_batch` are the samples of a step of all ranks, or `batch` those of each rank; `steps` of
    the whole training; `model` is one of the reference trainer. `trained_parameters` have
    gradients, None: all; `parameter_bytes` and `trained_bytes` are those of one. Of a model without
    a known shape, `blocks` are its equal layers, `activation_bytes` those of a sample, and
    `gathered_parameters` what fsdp gathers at once.
    `sources` are the name of each value and where it comes from.
    """

    name: str
    model: ModelName | None = None
    parameters: int | None = None
    trained_parameters: int | None = None
    parameter_bytes: float | None = None
    trained_bytes: float | None = None
    blocks: int | None = None
    flops_per_sample: float | None = None
    activation_bytes: float | None = None
    gathered_parameters: int | None = None
    global_batch: int | None = None
    batch: int | None = None
    steps: int | None = None
    accumulate: int | None = None
    precision: PrecisionName = "fp32"
    optimizer: str = "adamw"
    checkpointing: str = "none"
    sources: dict[str, str] = {}

    @property
    def shape(self) -> GptShape | None:
        """The shape of a GPT of the reference trainer."""
        return GPT_SHAPES.get(self.model or "")


def gpt_parameters(shape: GptShape) -> int:
    """Return the number of parameters of a GPT whose logits have weights of their own."""
    width = shape.width
    tables = (2 * shape.vocabulary + shape.context) * width
    return tables + shape.blocks * block_parameters(width) + 2 * width


def block_parameters(width: int) -> int:
    """Return the parameters of a transformer block with biases, and an MLP four times as wide."""
    return 12 * width**2 + 13 * width


def gpt_flops(shape: GptShape) -> float:
    """Return the operations of a sample in a step: 6 N + 12 L T d for each of its T tokens.

    N are the parameters of matrix products, so without the table of tokens (Chowdhery et al., PaLM,
    2022, appendix B); the attention counts as if no position were masked.
    """
    products = 12 * shape.blocks * shape.width**2 + shape.vocabulary * shape.width
    attention = 12 * shape.blocks * shape.context * shape.width
    return shape.context * (6.0 * products + attention)
