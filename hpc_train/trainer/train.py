"""Reference trainer, `python -m hpc_train.trainer.train`: reads options, prints `@hpct` events."""

from __future__ import annotations

import os
import shutil
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from hpc_train.jobs.strategies import GPT_SHAPES, TrainingRequest, batch_problem, strategy_problem
from hpc_train.trainer import WorkloadError
from hpc_train.trainer.emit import emit, write_line
from hpc_train.trainer.spawn_ranks import env_int, exit_code_of, leave, run_ranks, world_size
from hpc_train.trainer.trainer_options import (
    BASE_BATCH_SIZE,
    BatchSize,
    Options,
    parse_options,
    share_batch,
)

if TYPE_CHECKING:
    from hpc_train.trainer.process_group import RankGroup
    from hpc_train.trainer.training_loop import TrainingResult

# single is ddp with one rank.
_LAYOUTS = {"single": "data parallel", "ddp": "data parallel"}


def main() -> int:
    """Run the command line on every rank that the environment describes; return the exit code.

    0 is success, 2 an invalid option; any other is the exit code of the rank that failed first.

    Raises:
        WorkloadError: the options do not fit the environment or the data set.
    """
    options = parse_options()
    # Checked before ranks are started, so that it is reported once and not by every rank.
    check_job(options, world_size())
    return run_ranks(partial(train, options))


def train(options: Options) -> int:
    """Train as one rank; return its exit code."""
    import torch

    from hpc_train.trainer.process_group import joined

    if "OMP_NUM_THREADS" in os.environ:
        torch.set_num_threads(env_int("OMP_NUM_THREADS", 1, low=1))
    torch.manual_seed(options.seed)
    with joined(options.backend, options.device) as group:
        return _train_in(group, options)


def _train_in(group: RankGroup, options: Options) -> int:
    from hpc_train.trainer.checkpoint import RESUBMIT, CheckpointError
    from hpc_train.trainer.datasets import load_data, load_text
    from hpc_train.trainer.measurements import ResourceUse, measure_accuracy, report_model
    from hpc_train.trainer.models import make_model
    from hpc_train.trainer.optimizer import OptimizerChoice, parameter_type
    from hpc_train.trainer.strategies import build
    from hpc_train.trainer.strategies.base import Setup
    from hpc_train.trainer.training_loop import Stopped, Trainer

    request = training_request(options, group.world_size, group.device.type)
    batch = batch_of(options, request)
    rate, text = options.learning_rate, ""
    if options.batch_size is not None:
        rate = rate * batch.global_size / BASE_BATCH_SIZE
        text = f" = {options.learning_rate:g} x {batch.global_size}/{BASE_BATCH_SIZE}"
    shape, data = GPT_SHAPES.get(options.model), options.data
    train_set, test_set = load_data(data) if shape is None else load_text(data, shape.context)
    trainer = Trainer(options, group, train_set, batch, request)
    if group.rank == 0:
        _report_start(options, group, batch, rate, trainer.steps)
        write_line(f"learning rate {rate:g}{text}")
    make = partial(
        make_model,
        options.model,
        channels=train_set.channels,
        classes=train_set.classes,
        width=options.width,
        dtype=parameter_type(options.precision),
    )
    optimizer = OptimizerChoice(
        name=options.optimizer,
        learning_rate=rate,
        clip_norm=options.clip_norm,
        warmup_steps=options.warmup_steps,
    )
    use = ResourceUse(group)
    setup = Setup(group=group, request=request, optimizer=optimizer)
    model = build(make, setup)
    use.start()
    try:
        outcome = trainer.train(model)
    except Stopped as stopped:
        if group.rank == 0:
            write_line(str(stopped))
        return RESUBMIT if stopped.saved else 1
    except CheckpointError as error:
        raise WorkloadError(str(error)) from error
    use.report(outcome.steps - trainer.resumed, trainer.exposed.share())
    accuracy = None
    if not options.no_accuracy:
        whole = make()
        whole.load_state_dict(model.state())
        group.share(list(whole.to(group.device).buffers()))
        accuracy = measure_accuracy(whole, test_set, group, options.precision)
    if group.rank == 0:
        report_model(options, request, make, train_set)
        _report_end(group, batch, outcome, accuracy)
    return 0


def _report_start(
    options: Options, group: RankGroup, batch: BatchSize, rate: float, steps: int
) -> None:
    import torch

    from hpc_train.trainer.process_group import conditions

    # What changes the speed of a step, where it is used.
    techniques = {
        "compile": options.compile,
        "checkpointing": options.checkpointing,
        "schedule": options.schedule if options.strategy.startswith("pipeline") else "none",
    }
    emit(
        event="conditions",
        conditions={
            **conditions(group),
            "model": f"cnn of width {options.width}" if options.model == "cnn" else options.model,
            "data": options.data,
            "precision": options.precision,
            "layout": _LAYOUTS.get(options.strategy, options.strategy),
            **{name: value for name, value in techniques.items() if value != "none"},
        },
    )
    emit(
        event="start",
        world_size=group.world_size,
        total_steps=steps,
        global_batch_size=batch.global_size,
        batch_size=batch.size,
        learning_rate=rate,
        backend=group.backend,
        device=group.device.type,
        torch=torch.__version__.partition("+")[0],
        model=options.model,
        data=options.data,
        precision=options.precision,
        seed=options.seed,
        threads=torch.get_num_threads(),
        launcher_env=group.launcher,
    )


def _report_end(
    group: RankGroup, batch: BatchSize, outcome: TrainingResult, accuracy: float | None
) -> None:
    rate = outcome.samples / outcome.time_to_train
    emit(
        event="end",
        steps=outcome.steps,
        samples=outcome.samples,
        first_step_time=outcome.first_step_time,
        time_to_train=outcome.time_to_train,
        samples_per_second=rate,
        **({} if accuracy is None else {"accuracy": accuracy}),
        loss=outcome.loss,
        global_batch_size=batch.global_size,
        world_size=group.world_size,
    )
    shown = "not measured" if accuracy is None else f"{accuracy:.2%}"
    write_line(
        f"done: {outcome.steps} steps of {batch.global_size} samples on {group.world_size} rank(s) "
        f"in {outcome.time_to_train:.2f} s, {rate:.0f} samples/s; test accuracy {shown}"
    )


IMAGES = ("digits", "synthetic", "synthetic-imagenet")


def check_job(options: Options, world_size: int) -> None:
    """Check strategy, batch and data of a job before its ranks are started.

    Raises:
        WorkloadError: they cannot be trained with.
    """
    device = _expected_device(options)
    batch_of(options, training_request(options, world_size, device))
    # A process without a launcher has no process group; ddp then trains without it.
    launched = "RANK" in os.environ or "LOCAL_WORLD_SIZE" in os.environ
    if not launched and options.strategy not in ("single", "dp", "ddp"):
        raise WorkloadError(
            f"--strategy {options.strategy} needs a process group; "
            "start the trainer with a launcher such as torchrun, or use single"
        )
    if options.backend == "nccl" and device == "cpu":
        raise WorkloadError("--backend nccl needs a CUDA device; use gloo on the CPU")
    # On a CPU `torch.compile` writes C++; torch would say so in a traceback of each rank.
    compilers = (os.environ.get("CXX") or "g++", "clang++")
    if options.compile != "none" and device == "cpu" and not any(map(shutil.which, compilers)):
        raise WorkloadError(
            f"--compile {options.compile} needs a C++ compiler, but there is no "
            f"{' or '.join(compilers)} in PATH; load its module in setup, or leave compile out"
        )
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
    if options.data == "digits" and options.model == "resnet50":
        raise WorkloadError(
            "--data digits: images of 8 x 8 are too small for resnet50; use synthetic "
            "or synthetic-imagenet"
        )
    if options.model in GPT_SHAPES:
        if options.data != "synthetic" and not Path(options.data).is_file():
            raise WorkloadError(
                f"--data {options.data}: a GPT needs text; use synthetic or the path of a file"
            )
    elif options.data not in IMAGES:
        raise WorkloadError(f"--data {options.data}: no set of images; use {', '.join(IMAGES)}")


def _expected_device(options: Options) -> str:
    """Return the type of the device without torch, which the parent of the ranks does not need."""
    gpus = any(Path("/dev").glob("nvidia[0-9]*")) or Path("/dev/kfd").exists()
    return "cuda" if gpus and options.device != "cpu" else "cpu"


if __name__ == "__main__":
    leave(exit_code_of(main))
