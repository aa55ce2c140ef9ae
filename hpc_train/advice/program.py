"""The size of a program: what a forecast needs to know of a training, each with its source."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from hpc_train.base.errors import SpecError, nearest
from hpc_train.base.values import Sourced, Value
from hpc_train.jobs import strategies
from hpc_train.jobs.job import JobSpec, SourcedJob
from hpc_train.jobs.operations import dtype_of, number_of

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
    model: strategies.ModelName | None = None
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
    precision: strategies.PrecisionName = "fp32"
    optimizer: str = "adamw"
    checkpointing: str = "none"
    sources: dict[str, str] = {}

    @property
    def shape(self) -> strategies.GptShape | None:
        """The shape of a GPT of the reference trainer."""
        return strategies.GPT_SHAPES.get(self.model or "")


def gpt_parameters(shape: strategies.GptShape) -> int:
    """Return the number of parameters of a GPT whose logits have weights of their own."""
    width = shape.width
    tables = (2 * shape.vocabulary + shape.context) * width
    return tables + shape.blocks * block_parameters(width) + 2 * width


def block_parameters(width: int) -> int:
    """Return the parameters of a transformer block with biases, and an MLP four times as wide."""
    return 12 * width**2 + 13 * width


def gpt_flops(shape: strategies.GptShape) -> float:
    """Return the operations of a sample in a step: 6 N + 12 L T d for each of its T tokens.

    N are the parameters of matrix products, so without the table of tokens (Chowdhery et al., PaLM,
    2022, appendix B); the attention counts as if no position were masked.
    """
    products = 12 * shape.blocks * shape.width**2 + shape.vocabulary * shape.width
    attention = 12 * shape.blocks * shape.context * shape.width
    return shape.context * (6.0 * products + attention)


TRAINER = "hpc_train.trainer.train"
_DEFAULTS = {"model": "cnn", "precision": "fp32", "optimizer": "sgd", "checkpointing": "none"}
# Option of the trainer -> field; keys of `trainer` have the same names.
_OPTIONS = {
    "--model": "model",
    "--precision": "precision",
    "--optimizer": "optimizer",
    "--checkpointing": "checkpointing",
    "--accumulate": "accumulate",
    "--global-batch-size": "global_batch",
    "--batch-size": "batch",
    "--steps": "steps",
}
_NUMBERS = (
    "parameters", "trained_parameters", "blocks", "global_batch", "batch", "steps", "accumulate",
    "gathered_parameters",
)  # fmt: skip
_REALS = ("parameter_bytes", "trained_bytes", "flops_per_sample", "activation_bytes")
_FACTORS = {"K": 10**3, "M": 10**6, "B": 10**9}
CONDITIONS = (
    *_NUMBERS,
    *_REALS,
    "precision",
    "optimizer",
    "checkpointing",
)
_WORDS = {
    "model": strategies.MODELS,
    "precision": strategies.PRECISIONS,
    "optimizer": strategies.OPTIMIZERS,
    "checkpointing": strategies.CHECKPOINTING,
}


def program_of(job: SourcedJob, stated: Mapping[str, Any], source: str) -> ProgramSize:
    """Return the size of a job's program; stated conditions take precedence.

    Raises:
        SpecError: a condition has a wrong value.
    """
    found: dict[str, tuple[Any, str]] = {}
    if TRAINER in job.value.command:
        found |= {key: (value, f"default of {TRAINER}") for key, value in _DEFAULTS.items()}
        found |= {
            _OPTIONS[option]: (_typed(_OPTIONS[option], value), f"{option} of the command")
            for option, value in _pairs(job.value.command)
            if option in _OPTIONS
        }
        found |= _of_trainer(job)
        found |= _of_model(str(found["model"][0]))
    for key, value in stated.items():
        if key in CONDITIONS:
            found[key] = (_typed(key, value), source)
    return _program(job.value.name or "job", found)


def program_identity(job: JobSpec) -> tuple[str, ...]:
    """Return what makes runs comparable with a job's: the command, or what the trainer trains.

    Strategy, sizes, batch and length of the trainer may differ.
    """
    if TRAINER not in job.command:
        return tuple(job.command)
    found = program_of(Sourced(value=job, origins={}), {}, "")
    return (TRAINER, found.model or "", found.precision, found.optimizer, found.checkpointing)


def completed(program: ProgramSize, conditions: Mapping[str, str], source: str) -> ProgramSize:
    """Return the program with what its own runs stated, where nothing else is known.

    Raises:
        SpecError: more trained parameters than parameters.
    """
    found: dict[str, Any] = {}
    for key, text in conditions.items():
        value = 0.0 if key == "activation_bytes" and text in ("0", "0.0") else number_of(text)
        if key == "precision" and key not in program.sources:
            found[key] = text
        elif value is not None and getattr(program, key) is None:
            found[key] = int(value) if key in _NUMBERS else value
    sources = program.sources | dict.fromkeys(found, source)
    return _checked(msgspec.structs.replace(program, **found, sources=sources))


def parse_condition(text: str) -> tuple[str, str]:
    """Return key and value of `--condition parameters=124e6`.

    Raises:
        SpecError: no such condition, or no value.
    """
    key, equals, value = text.partition("=")
    if key not in CONDITIONS:
        said = f"--condition {text}: no condition {key!r}{nearest(key, CONDITIONS)}"
        raise SpecError(said, f"allowed: {', '.join(CONDITIONS)}")
    if not equals or not value:
        raise SpecError(f"--condition {text}: a value is missing", f"--condition {key}=…")
    return key, value


def _program(name: str, found: Mapping[str, tuple[Any, str]]) -> ProgramSize:
    values = {key: value for key, (value, _) in found.items()}
    sources = {key: where for key, (_, where) in found.items()}
    if "global_batch" in values:
        values.pop("batch", None)
    return _checked(ProgramSize(name=name, sources=sources, **values))


def _checked(program: ProgramSize) -> ProgramSize:
    """Refuse more trained parameters than there are.

    Raises:
        SpecError: with the source of both.
    """
    whole, trained = program.parameters, program.trained_parameters
    if whole and trained and trained > whole:
        where, of = program.sources["parameters"], program.sources["trained_parameters"]
        raise SpecError(
            f"trained_parameters {trained:.4g} ({of}) are more than parameters {whole:.4g} "
            f"({where}), of which they are a part",
            f"--condition trained_parameters={whole:.4g}, or less",
        )
    return program


def _pairs(command: Sequence[str]) -> Iterator[tuple[str, str]]:
    for word, following in zip(command, [*command[1:], ""], strict=True):
        option, equals, value = word.partition("=")
        yield option, value if equals else following


def _of_trainer(job: SourcedJob) -> dict[str, tuple[Any, str]]:
    trainer = job.value.trainer
    keys = [name for name in _OPTIONS.values() if trainer is not None and hasattr(trainer, name)]
    given = {key: getattr(trainer, key) for key in keys}
    return {
        key: (value, job.near(f"trainer.{key}"))
        for key, value in given.items()
        if value is not None
    }


def _of_model(model: str) -> dict[str, tuple[Any, str]]:
    shape = strategies.GPT_SHAPES.get(model)
    if shape is not None:
        where = f"its shape: {shape.blocks} blocks, width {shape.width}"
        return {
            "parameters": (gpt_parameters(shape), where),
            "flops_per_sample": (gpt_flops(shape), where),
        }
    if model == "resnet50":
        where = "ResNet-50, images of 224 x 224"
        return {
            "parameters": (RESNET50_PARAMETERS, where),
            "flops_per_sample": (RESNET50_FLOPS, where),
        }
    return {}


def _typed(key: str, value: Any) -> Any:
    return _number(key, value) if key in (*_NUMBERS, *_REALS) else _word(key, str(value))


def _word(key: str, value: str) -> str:
    """Return one of the words of a key.

    Raises:
        SpecError: it is none of them.
    """
    word = dtype_of(value) if key == "precision" else value
    if word in _WORDS[key]:
        return word
    near = nearest(word, _WORDS[key])
    allowed = f"allowed: {', '.join(_WORDS[key])}"
    raise SpecError(f"{key} {value!r} is not known to advise{near}", allowed)


def _number(key: str, value: Any) -> int | float:
    """Return a number above 0, whole where a count is meant.

    Raises:
        SpecError: it is none.
    """
    text = str(value)
    factor = _FACTORS.get(text[-1:].upper(), 1) if key.endswith("parameters") else 1
    try:
        number = factor * float(text[:-1] if factor > 1 else value)
    except (TypeError, ValueError):
        number = 0.0
    whole = key in _NUMBERS
    # 1.3B is a whole number, 1.3 * 10**9 may not be one.
    number = float(round(number)) if factor > 1 else number
    if not 0 < number < 1e30 or (whole and not number.is_integer()):
        kind = "a whole number" if whole else "a number"
        raise SpecError(
            f"{key} {value!r}: not {kind} above 0",
            f"{key}={'7B' if key.endswith('parameters') else 1000}",
        )
    return int(number) if whole else number
