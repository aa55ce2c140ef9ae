"""Checks of a training job that need no torch: before ranks are started, reported once."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from hpc_train.model.strategy_checks import batch_problem, strategy_problem
from hpc_train.model.training_strategies import GPT_SHAPES, TrainingRequest
from hpc_train.workload import WorkloadError
from hpc_train.workload.batch_size import BatchSize, share_batch
from hpc_train.workload.trainer_options import Options

IMAGES = ("digits", "synthetic-imagenet")


def check_job(options: Options, world_size: int) -> None:
    """Check strategy, batch and data of a job before its ranks are started.

    Raises:
        WorkloadError: they cannot be trained with.
    """
    batch_of(options, training_request(options, world_size, _expected_device(options)))
    _check_process_group(options)
    _check_backend(options)
    _check_compiler(options)
    _check_data(options)


def training_request(options: Options, world_size: int, device: str) -> TrainingRequest:
    """Return the strategy of a job with `world_size` ranks; device is `cpu` or `cuda`.

    Raises:
        WorkloadError: the strategy cannot run with this model, device or number of ranks.
    """
    request = TrainingRequest(
        strategy=options.strategy,
        model=options.model,
        world_size=world_size,
        device=device,
        mesh=options.mesh,
        schedule=options.schedule,
        accumulate=options.accumulate,
        precision=options.precision,
        checkpointing=options.checkpointing,
        compile=options.compile,
    )
    problem = strategy_problem(request)
    if problem is not None:
        raise WorkloadError(f"--strategy {problem}")
    return request


def batch_of(options: Options, request: TrainingRequest) -> BatchSize:
    """Return the batch of each data-parallel rank.

    Raises:
        WorkloadError: the batch cannot be divided equally by these ranks and micro-batches.
    """
    batch = share_batch(options.global_batch_size, options.batch_size, request.data_size)
    problem = batch_problem(request, batch.size)
    if problem is not None:
        raise WorkloadError(f"--strategy {problem}")
    return batch


def _check_data(options: Options) -> None:
    if options.data == "synthetic":
        return
    if options.data == "digits" and options.model == "resnet50":
        raise WorkloadError(
            "--data digits: images of 8 x 8 are too small for resnet50; use synthetic, "
            "synthetic-imagenet or a folder of CIFAR-10"
        )
    if options.model in GPT_SHAPES:
        from hpc_train.workload.text_data import check_text

        check_text(options.data)
    elif options.data not in IMAGES:
        from hpc_train.workload.cifar10 import check_cifar

        check_cifar(Path(options.data))


def _check_compiler(options: Options) -> None:
    """On a CPU `torch.compile` writes C++; torch would say so in a traceback of each rank."""
    if options.compile == "none" or _expected_device(options) != "cpu":
        return
    compilers = (os.environ.get("CXX") or "g++", "clang++")
    if not any(map(shutil.which, compilers)):
        raise WorkloadError(
            f"--compile {options.compile} needs a C++ compiler, but there is no "
            f"{' or '.join(compilers)} in PATH; load its module in setup, or leave compile out"
        )


def _check_process_group(options: Options) -> None:
    """A process without a launcher has no process group; ddp then trains without it."""
    launched = "RANK" in os.environ or "LOCAL_WORLD_SIZE" in os.environ
    if not launched and options.strategy not in ("single", "dp", "ddp"):
        raise WorkloadError(
            f"--strategy {options.strategy} needs a process group; "
            "start the trainer with a launcher such as torchrun, or use single"
        )


def _check_backend(options: Options) -> None:
    if options.backend == "nccl" and _expected_device(options) == "cpu":
        raise WorkloadError("--backend nccl needs a CUDA device; use gloo on the CPU")


def _expected_device(options: Options) -> str:
    """Return the type of the device without torch, which the parent of the ranks does not need."""
    gpus = any(Path("/dev").glob("nvidia[0-9]*")) or Path("/dev/kfd").exists()
    return "cuda" if gpus and options.device != "cpu" else "cpu"
