"""Question: a program on a machine, on some sizes; which strategies can run on each."""

from __future__ import annotations

from hpc_train.advice.advice import MeasuredStep
from hpc_train.advice.machine import MachineSize
from hpc_train.advice.program import ProgramSize
from hpc_train.base.value import Value
from hpc_train.jobs.strategies import TrainingRequest, batch_problem, strategy_problem

# In the order of preference: the first that fits needs no other.
DATA_PARALLEL = ("single", "ddp", "zero1", "fsdp", "hsdp")


class Question(Value, frozen=True, kw_only=True):
    """What is asked: a program on a machine, on these numbers of GPUs (or ranks), in order.

    The training must end within `deadline_s` [s], and cost at most `budget_gpu_hours` [h].
    """

    program: ProgramSize
    machine: MachineSize
    sizes: tuple[int, ...]
    measured: tuple[MeasuredStep, ...] = ()
    deadline_s: float | None = None
    budget_gpu_hours: float | None = None

    @property
    def baseline(self) -> MeasuredStep | None:
        """The measured step that forecasts start from: of the fewest ranks, ddp before others."""
        usable = [one for one in self.measured if one.batch and one.strategy in DATA_PARALLEL]
        return min(
            usable,
            key=lambda one: (one.ranks, DATA_PARALLEL.index(one.strategy)),
            default=None,
        )

    def counted(self, ranks: int) -> str:
        """Return `4 GPUs`, or `1 rank` on a machine without GPUs."""
        unit = "GPU" if self.machine.gpus_per_node else "rank"
        return f"{ranks:,} {unit}{'s' * (ranks != 1)}"

    def samples(self, ranks: int) -> float | None:
        """Return the samples of a step on so many data-parallel ranks."""
        if self.program.global_batch is not None:
            return float(self.program.global_batch)
        return None if self.program.batch is None else float(self.program.batch * ranks)


def request_of(name: str, ranks: int, question: Question) -> TrainingRequest:
    """Return a strategy on so many ranks, with the program's options."""
    program, machine = question.program, question.machine
    nodes = machine.nodes(ranks)
    return TrainingRequest(
        strategy=name,
        model=program.model or "cnn",
        world_size=ranks,
        device="cuda" if machine.gpus_per_node else "cpu",
        mesh=(nodes, ranks // nodes) if name == "hsdp" and nodes > 1 else (),
        accumulate=program.accumulate,
        precision=program.precision,
        checkpointing=program.checkpointing,
    )


def problem_of(request: TrainingRequest, question: Question) -> str | None:
    """Return why a strategy cannot run on these ranks, or None."""
    name, machine = request.strategy, question.machine
    nodes = machine.nodes(request.world_size)
    if name == "hsdp" and (nodes == 1 or not machine.gpus_per_node):
        return "hsdp shards within a node and copies between nodes: it needs several nodes"
    samples = question.samples(request.data_size)
    if samples is not None and samples < request.data_size:
        plural = "s" * (samples != 1)
        return f"{name} cannot divide {samples:g} sample{plural} among {request.data_size} ranks"
    problem = strategy_problem(request)
    if problem is None and samples is not None and request.microbatches > 1:
        return batch_problem(request, int(samples / request.data_size))
    return problem
