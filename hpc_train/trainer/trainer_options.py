"""Options of the reference trainer."""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from hpc_train.jobs.strategies import (
    CHECKPOINTING,
    COMPILE,
    MODELS,
    PRECISIONS,
    SCHEDULES,
    STRATEGIES,
    TRAINER_OPTIMIZERS,
    unprofiled,
)
from hpc_train.trainer import WorkloadError

BASE_BATCH_SIZE = 128
EPILOG = (
    "Give --global-batch-size for strong scaling (the same batch for any number of ranks) "
    "or --batch-size for weak scaling (the same batch for each rank)."
)
DATA_HELP = (
    "PATH: a folder that contains CIFAR-10's cifar-10-batches-py, for a GPT a file of text or "
    "docs, the pages of this package's documentation "
    "(default: digits, for a GPT synthetic, for ResNet-50 synthetic-imagenet)"
)
WORKERS_HELP = "processes that read data ahead, for each rank (default: 0, the rank itself)"
_DATA = {"cnn": "digits", "resnet50": "synthetic-imagenet"}
MESH_HELP = "ranks in each dimension of a strategy with two, as 2,4 (default: 2 in the last one)"
ACCUMULATE_HELP = "micro-batches of a step (default: 1, in a pipeline the number of stages)"
RULE_HELP = (
    "multiply the learning rate by 1, by f or by sqrt(f), f = global batch / base batch "
    "(default: linear with --batch-size, none with --global-batch-size)"
)
BASE_HELP = f"the global batch to which --learning-rate applies (default: {BASE_BATCH_SIZE})"
CHECKPOINT_HELP = (
    "save a checkpoint after every N steps, in $HPCTRAIN_CHECKPOINTS, else ./checkpoints; the "
    "newest one is resumed, also without this option where the variable is set"
)
MINUTES_HELP = "the same by time, where the variable is set (default: 10)"
CLIP_HELP = "scale gradients whose norm, over the whole model, is larger (default: no limit)"
WARMUP_HELP = "the learning rate grows linearly in the first N steps (default: 0)"
COMPILE_HELP = "block: compile the blocks of the model (default: none)"
CHECKPOINTING_HELP = (
    "compute the activations of a block again in the backward pass: all, or all but products of "
    "matrices and attention (default: none)"
)
BACKEND_HELP = "auto: $HPCTRAIN_BACKEND, else nccl on CUDA, gloo on the CPU"
PROFILE_HELP = (
    "profile N steps from the third on, which are slower, for the share of their time in which a "
    "rank only waits for communication (default: 0)"
)
DEVICE_HELP = "auto: CUDA device LOCAL_RANK where there is one, else the CPU"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The checked options of the command line; None means not given."""

    data: str
    workers: int
    epochs: int | None
    steps: int | None
    global_batch_size: int | None
    batch_size: int | None
    learning_rate: float
    lr_rule: str | None
    base_batch_size: int
    seed: int
    width: int
    backend: str
    device: str
    no_accuracy: bool
    profile_steps: int
    checkpoint_steps: int | None
    checkpoint_minutes: float
    fail_rank: int | None
    fail_step: int
    fail_code: int
    strategy: str
    model: str
    mesh: tuple[int, ...]
    schedule: str
    accumulate: int | None
    optimizer: str
    precision: str
    clip_norm: float | None
    warmup_steps: int
    checkpointing: str
    compile: str

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
    _add_work(parser)
    _add_strategy(parser)
    _add_batch(parser)
    add = parser.add_argument
    add("--device", choices=("auto", "cuda", "cpu"), default="auto", help=DEVICE_HELP)
    backends = ("auto", "gloo", "nccl", "mpi")
    add("--backend", choices=backends, default="auto", help=BACKEND_HELP)
    group = parser.add_argument_group("test aid", "make one rank fail, to test its report")
    add = group.add_argument
    add("--fail-rank", type=natural, help="global rank that exits before a step")
    add("--fail-step", type=positive, default=1, help="that step, counted from 1 (default: 1)")
    add("--fail-code", type=_exit_code, default=1, help="its exit code, 1..255 (default: 1)")
    given = vars(parser.parse_args(arguments))
    too_few = unprofiled(given["profile_steps"], given["steps"]) if given["steps"] else None
    if too_few:
        parser.error(f"--profile-steps: {too_few}")
    given["data"] = given["data"] or _DATA.get(given["model"], "synthetic")
    return Options(**given)


def _add_work(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--data", metavar="digits|synthetic|synthetic-imagenet|PATH", help=DATA_HELP)
    add("--workers", type=natural, default=0, metavar="N", help=WORKERS_HELP)
    add("--epochs", type=positive, help="default: 1, or as many as --steps needs")
    add("--steps", type=positive, help="stop after this number of steps, in any epoch")
    add("--seed", type=natural, default=0, help="seed of the weights and of the sample order")
    add("--width", type=positive, default=48, help="number of channels of the CNN")
    add("--checkpoint-steps", type=positive, metavar="N", help=CHECKPOINT_HELP)
    add("--checkpoint-minutes", type=_rate, default=10.0, metavar="N", help=MINUTES_HELP)
    add("--profile-steps", type=natural, default=0, metavar="N", help=PROFILE_HELP)
    add("--no-accuracy", action="store_true", help="do not evaluate the test set at the end")


def _add_strategy(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--strategy", choices=STRATEGIES, default="ddp", help="how ranks share the work")
    add("--model", choices=MODELS, default="cnn", help="the network (default: cnn)")
    add("--mesh", type=_mesh, default=(), metavar="N,N", help=MESH_HELP)
    add("--schedule", choices=SCHEDULES, default="1F1B", help="of a pipeline (default: 1F1B)")
    add("--accumulate", type=positive, metavar="N", help=ACCUMULATE_HELP)
    add("--optimizer", choices=TRAINER_OPTIMIZERS, default="sgd", help="default: sgd, momentum 0.9")
    add("--precision", choices=PRECISIONS, default="fp32", help="default: fp32")
    add("--clip-norm", type=_rate, metavar="X", help=CLIP_HELP)
    add("--warmup-steps", type=natural, default=0, metavar="N", help=WARMUP_HELP)
    add("--checkpointing", choices=CHECKPOINTING, default="none", help=CHECKPOINTING_HELP)
    add("--compile", choices=COMPILE, default="none", help=COMPILE_HELP)


def _add_batch(parser: argparse.ArgumentParser) -> None:
    size = parser.add_mutually_exclusive_group(required=True)
    size.add_argument("--global-batch-size", type=positive, help="samples per step, all ranks")
    size.add_argument("--batch-size", type=positive, help="samples per step, each rank")
    add = parser.add_argument
    add("--learning-rate", type=_rate, default=0.1, help="default: 0.1")
    add("--lr-rule", choices=RULES, help=RULE_HELP)
    add("--base-batch-size", type=positive, default=BASE_BATCH_SIZE, help=BASE_HELP)


def positive(text: str) -> int:
    """Return a whole number of at least 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def _mesh(text: str) -> tuple[int, ...]:
    sizes = text.split(",")
    if not all(size.isdecimal() and int(size) for size in sizes):
        raise argparse.ArgumentTypeError(f"{text!r} is no list of ranks such as 2,4")
    return tuple(map(int, sizes))


def natural(text: str) -> int:
    """Return a whole number of at least 0."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 0")
    return int(text)


def _exit_code(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 255:
        raise argparse.ArgumentTypeError(f"{text!r} is not an exit code, 1 to 255")
    return int(text)


def _rate(text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = math.nan
    if not (math.isfinite(rate) and rate > 0):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return rate


RULES = ("none", "linear", "sqrt")


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


def scale_learning_rate(rate: float, rule: str, global_batch_size: int, base: int) -> float:
    """Return the learning rate for this global batch under `none`, `linear` or `sqrt`."""
    factor = global_batch_size / base
    return rate * {"none": 1.0, "linear": factor, "sqrt": math.sqrt(factor)}[rule]
