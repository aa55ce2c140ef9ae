"""The keys of `trainer` as options of the reference trainer, checked before a job is submitted."""

from collections.abc import Sequence
from itertools import pairwise

from msgspec.structs import replace

from hpc_train.base.decode import keys_of
from hpc_train.base.errors import PlanError, StrategyError
from hpc_train.base.values import Sourced
from hpc_train.jobs.job import SourcedJob, Topology, TrainerOptions
from hpc_train.jobs.strategies import TrainingRequest, batch_problem, strategy_problem, unprofiled

PROGRAM = "hpc_train.trainer.train"
# Options of a command with which the trainer itself decides what can run.
_DECIDING = {*keys_of(TrainingRequest)} & {*keys_of(TrainerOptions)}


def with_trainer_options(job: SourcedJob, topology: Topology) -> SourcedJob:
    """Return the job with the keys of `trainer` added to its command.

    Raises:
        PlanError: the command runs another program or has the same option, or the strategy cannot
            run on these ranks.
    """
    trainer = job.value.trainer
    if trainer is None:
        return job
    where, command = job.near("trainer"), job.value.command
    if PROGRAM not in command:
        raise PlanError(
            f"{where}: trainer: the command does not run {PROGRAM}, which reads these keys",
            "leave trainer out, and give your program its own options in command",
        )
    words: list[str] = []
    for key in keys_of(TrainerOptions):
        option, value = f"--{key.replace('_', '-')}", getattr(trainer, key)
        if value is None:
            continue
        if option in command:
            raise PlanError(f"{where}: trainer.{key}: the command has {option} as well")
        words += [option, str(value)]
    _check_strategy(job, topology)
    steps = dict(pairwise((*command, *words))).get("--steps", "")
    too_few = unprofiled(trainer.profile_steps or 0, int(steps)) if steps.isdecimal() else None
    if too_few:
        raise PlanError(f"{where}: trainer.profile_steps: {too_few}")
    changed = replace(job.value, command=(*command, *words))
    return Sourced(value=changed, origins=job.origins)


def _check_strategy(job: SourcedJob, topology: Topology) -> None:
    trainer = job.value.trainer
    if trainer is None or any(f"--{key}" in job.value.command for key in _DECIDING):
        return
    request = TrainingRequest(
        strategy=trainer.strategy or "ddp",
        model=trainer.model or "cnn",
        world_size=topology.world_size,
        device="cuda" if topology.gpus_per_node else "cpu",
        mesh=tuple(map(int, trainer.mesh.split(","))) if trainer.mesh else (),
        schedule=trainer.schedule or "1F1B",
        accumulate=trainer.accumulate,
        precision=trainer.precision or "fp32",
        checkpointing=trainer.checkpointing or "none",
        compile=trainer.compile or "none",
    )
    problem = strategy_problem(request)
    if problem is not None:
        raise StrategyError(job.near("trainer.strategy"), problem)
    problem = _problem_of_batch(request, job.value.command)
    if problem is not None:
        raise StrategyError(job.near("trainer.accumulate"), problem)


def _problem_of_batch(request: TrainingRequest, command: Sequence[str]) -> str | None:
    """Return why the batch that a command states is no whole number of micro-batches, or None.

    Whether all ranks have equal parts of it is the trainer's own check.
    """
    given = dict(pairwise(command))
    for option, parts in (("--batch-size", 1), ("--global-batch-size", request.data_size)):
        size = given.get(option, "")
        if size.isdecimal() and int(size) % parts == 0:
            return batch_problem(request, int(size) // parts)
    return None
