"""Options of the reference trainer."""

import argparse
import math
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, NoReturn

from hpc_train.jobs import strategies
from hpc_train.trainer import WorkloadError

BASE_BATCH_SIZE = 128
EPILOG = (
    "Give --global-batch-size for strong scaling (the same batch for any number of ranks) "
    "or --batch-size for weak scaling (the same batch for each rank)."
)
_DATA = {"cnn": "digits", "resnet50": "synthetic-imagenet"}


def _whole(low: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not text.isdecimal() or int(text) < low:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least {low}")
        return int(text)

    return read


positive, natural = _whole(1), _whole(0)


def _mesh(text: str) -> tuple[int, ...]:
    sizes = text.split(",")
    if not all(size.isdecimal() and int(size) for size in sizes):
        raise argparse.ArgumentTypeError(f"{text!r} is no list of ranks such as 2,4")
    return tuple(map(int, sizes))


def _rate(text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = math.nan
    if not (math.isfinite(rate) and rate > 0):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return rate


def _option(default: Any, text: str, kind: Callable[[str], Any] = str, **words: Any) -> Any:
    """Return a field of `Options` with the arguments of its option of the command line."""
    return field(metadata={"default": default, "type": kind, "help": text, **words})


def _choice(choices: Iterable[str], default: str | None, text: str) -> Any:
    return _option(default, text, choices=tuple(choices))


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The checked options of the command line; None means not given."""

    data: str = _option(
        None,
        "PATH: a file of text for a GPT (default: digits, for a GPT synthetic, for ResNet-50 "
        "synthetic-imagenet)",
        metavar="digits|synthetic|synthetic-imagenet|PATH",
    )
    workers: int = _option(
        0, "processes that read data ahead, for each rank (default: 0, the rank itself)", natural
    )
    epochs: int | None = _option(None, "default: 1, or as many as --steps needs", positive)
    steps: int | None = _option(None, "stop after this number of steps, in any epoch", positive)
    seed: int = _option(0, "seed of the weights and of the sample order", natural)
    width: int = _option(48, "number of channels of the CNN", positive)
    checkpoint_steps: int | None = _option(
        None,
        "save a checkpoint after every N steps, in $HPCTRAIN_CHECKPOINTS, else ./checkpoints; the "
        "newest one is resumed, also without this option where the variable is set",
        positive,
    )
    checkpoint_minutes: float = _option(
        10.0, "the same by time, where the variable is set (default: 10)", _rate
    )
    profile_steps: int = _option(
        0,
        "profile N steps from the third on, which are slower, for the share of their time in which "
        "a rank only waits for communication (default: 0)",
        natural,
    )
    no_accuracy: bool = field(
        metadata={"action": "store_true", "help": "do not evaluate the test set at the end"}
    )
    strategy: str = _choice(strategies.STRATEGIES, "ddp", "how ranks share the work (default: ddp)")
    model: str = _choice(strategies.MODELS, "cnn", "the network (default: cnn)")
    mesh: tuple[int, ...] = _option(
        (), "ranks in each dimension of a strategy with two, as 2,4 (default: 2 in the last)", _mesh
    )
    schedule: str = _choice(strategies.SCHEDULES, "1F1B", "of a pipeline (default: 1F1B)")
    accumulate: int | None = _option(
        None, "micro-batches of a step (default: 1, in a pipeline the number of stages)", positive
    )
    optimizer: str = _choice(strategies.TRAINER_OPTIMIZERS, "sgd", "default: sgd, momentum 0.9")
    precision: str = _choice(strategies.PRECISIONS, "fp32", "default: fp32")
    clip_norm: float | None = _option(
        None, "scale gradients whose norm, over the whole model, is larger", _rate
    )
    warmup_steps: int = _option(
        0, "the learning rate grows linearly in the first N steps (default: 0)", natural
    )
    checkpointing: str = _choice(
        strategies.CHECKPOINTING,
        "none",
        "compute the activations of a block again in the backward pass: all, or all but products "
        "of matrices and attention (default: none)",
    )
    compile: str = _choice(strategies.COMPILE, "none", "block: compile the blocks of the model")
    global_batch_size: int | None = _option(None, "samples per step, all ranks", positive)
    batch_size: int | None = _option(None, "samples per step, each rank", positive)
    learning_rate: float = _option(
        0.1,
        "default: 0.1; with --batch-size it is that of a global batch of "
        f"{BASE_BATCH_SIZE}, and grows in proportion to the global batch",
        _rate,
    )
    device: str = _choice(
        ("auto", "cuda", "cpu"), "auto", "auto: CUDA device LOCAL_RANK if there is one, else CPU"
    )
    backend: str = _choice(
        ("auto", "gloo", "nccl", "mpi"),
        "auto",
        "auto: $HPCTRAIN_BACKEND, else nccl on CUDA, gloo on the CPU",
    )
    fail_rank: int | None = _option(None, "a test aid: rank that exits before a step", natural)
    fail_step: int = _option(1, "that step, counted from 1 (default: 1)", positive)
    fail_code: int = _option(1, "its exit code (default: 1)", positive)

    @property
    def checkpoints(self) -> bool:
        """Whether the training saves checkpoints: by its option, or because its job asks for it."""
        return self.checkpoint_steps is not None or "HPCTRAIN_CHECKPOINTS" in os.environ


class Parser(argparse.ArgumentParser):
    """A parser of the command line of each rank of a job."""

    def error(self, message: str) -> NoReturn:
        """Print the error on one line, because a job log contains it once per rank."""
        print(f"{self.prog}: error: {message} (see --help)", file=sys.stderr)
        sys.exit(2)


def parse_options(arguments: Sequence[str] | None = None) -> Options:
    """Read the command line, `sys.argv` by default.

    Raises:
        SystemExit: 2, with one line on stderr: an option is unknown, missing or out of range.
    """
    parser = Parser(
        prog="python -m hpc_train.trainer.train",
        description="Train a CNN, ResNet-50 or a GPT on any number of ranks; print `@hpct` events.",
        epilog=EPILOG,
        allow_abbrev=False,
    )
    size = parser.add_mutually_exclusive_group(required=True)
    for one in fields(Options):
        group = size if one.name in ("global_batch_size", "batch_size") else parser
        group.add_argument(f"--{one.name.replace('_', '-')}", **one.metadata)
    given = vars(parser.parse_args(arguments))
    too_few = (
        strategies.unprofiled(given["profile_steps"], given["steps"]) if given["steps"] else None
    )
    if too_few:
        parser.error(f"--profile-steps: {too_few}")
    given["data"] = given["data"] or _DATA.get(given["model"], "synthetic")
    return Options(**given)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSize:
    """Samples per optimiser step: of all ranks together, and of each rank."""

    global_size: int
    size: int


def share_batch(
    global_batch_size: int | None, batch_size: int | None, world_size: int
) -> BatchSize:
    """Return the batch; exactly one of the two sizes is given.

    Raises:
        ValueError: neither size is given.
        WorkloadError: the global batch cannot be shared equally, so that the ranks' gradients would
            have unequal weight.
    """
    if batch_size is not None:
        return BatchSize(global_size=batch_size * world_size, size=batch_size)
    if global_batch_size is None:
        raise ValueError("neither a global batch size nor one per rank")
    if global_batch_size % world_size:
        below = global_batch_size // world_size * world_size
        sizes = [str(size) for size in (below, below + world_size) if size]
        raise WorkloadError(
            f"--global-batch-size {global_batch_size} cannot be shared equally by {world_size} "
            f"ranks; nearest: {' or '.join(sizes)}"
        )
    return BatchSize(global_size=global_batch_size, size=global_batch_size // world_size)
