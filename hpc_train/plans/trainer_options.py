"""The keys of `trainer` as options of the reference trainer, checked before a job is submitted."""

from __future__ import annotations

from msgspec.structs import replace

from hpc_train.errors import PlanError, nearest
from hpc_train.model.job import SourcedJob
from hpc_train.model.plan import Topology
from hpc_train.model.strategy_checks import strategy_problem
from hpc_train.model.training_strategies import MODELS, STRATEGIES, TrainingRequest
from hpc_train.model.value import Sourced
from hpc_train.typed_values import keys_of

PROGRAM = "hpc_train.workload.train"
# Options that a command may still have, with which the trainer itself decides what can run.
_UNCHECKED = frozenset({"--strategy", "--model", "--mesh", "--schedule", "--accumulate"})


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
    given = {key: getattr(trainer, key) for key in keys_of(type(trainer))}
    options = {f"--{key}": str(value) for key, value in given.items() if value is not None}
    for option in options:
        if option in command:
            raise PlanError(f"{where}: trainer.{option[2:]}: the command has {option} as well")
    _check_name(job, "strategy", trainer.strategy, STRATEGIES)
    _check_name(job, "model", trainer.model, MODELS)
    _check_strategy(job, topology)
    words = tuple(word for pair in options.items() for word in pair)
    changed = replace(job.value, command=(*command, *words))
    return Sourced(value=changed, origins=job.origins)


def _check_name(job: SourcedJob, key: str, name: str | None, known: tuple[str, ...]) -> None:
    if name is not None and name not in known:
        raise PlanError(
            f"{job.near(f'trainer.{key}')}: {name!r} is no {key} of the reference trainer"
            f"{nearest(name, known)}; allowed: {', '.join(known)}"
        )


def _check_strategy(job: SourcedJob, topology: Topology) -> None:
    trainer = job.value.trainer
    if trainer is None or _UNCHECKED.intersection(job.value.command):
        return
    request = TrainingRequest(
        strategy=trainer.strategy or "ddp",
        model=trainer.model or "cnn",
        world_size=topology.world_size,
        device="cuda" if topology.gpus_per_node else "cpu",
        accumulate=trainer.accumulate,
    )
    problem = strategy_problem(request)
    if problem is not None:
        raise PlanError(f"{job.near('trainer.strategy')}: {problem}")
