"""Questions of which one thing at a time is changed."""

from typing import Any

from msgspec.structs import replace

from hpc_train.advice.advice import Advice, AdviceRow, MeasuredStep, Question
from hpc_train.advice.machine import MachineSize
from hpc_train.advice.program import ProgramSize, gpt_flops, gpt_parameters
from hpc_train.jobs.strategies import GPT_SHAPES

# Four A100 of 40 GB, NVLink, four adapters of 200 Gbit/s.
A100 = MachineSize(
    site="here", partition="gpu", gpus_per_node=4, ranks_per_node=4, gpu="A100", least_gib=40,
    most_gib=40, peak_tflops={"bf16": 312.0, "tf32": 156.0, "fp32": 19.5}, gpu_link=300.0,
    node_link=100.0,
)  # fmt: skip
V100 = replace(A100, gpu="V100", least_gib=16, most_gib=16, gpu_link=150.0)
CPUS = MachineSize(site="here", partition="cpu", gpus_per_node=0, ranks_per_node=2)


def gpt(model: str = "gpt-124m", **changed: Any) -> ProgramSize:
    """Return a GPT in bf16 with AdamW."""
    shape = GPT_SHAPES[model]
    known = ProgramSize(
        name=model, model=model, parameters=gpt_parameters(shape),  # type: ignore[arg-type]
        flops_per_sample=gpt_flops(shape), global_batch=64, precision="bf16",
    )  # fmt: skip
    return replace(known, **changed)


def other(parameters: float | None = 1e9, **changed: Any) -> ProgramSize:
    """Return a program of which only the number of parameters and the batch are known."""
    known = ProgramSize(
        name="own", parameters=None if parameters is None else int(parameters), global_batch=256
    )
    return replace(known, **changed)


def step(seconds: float, ranks: int = 1, batch: float | None = 64, **changed: Any) -> MeasuredStep:
    """Return a measured step."""
    strategy = "single" if ranks == 1 else "ddp"
    return replace(
        MeasuredStep(seconds=seconds, ranks=ranks, batch=batch, strategy=strategy, source="runs"),
        **changed,
    )


def ask(program: ProgramSize, machine: MachineSize = A100, *sizes: int, **more: Any) -> Question:
    """Return a question about these sizes, by default 1, 2, 4, 8 and 16."""
    return Question(program=program, machine=machine, sizes=sizes or (1, 2, 4, 8, 16), **more)


def row_of(advice: Advice, strategy: str, ranks: int) -> AdviceRow:
    """Return the row of a strategy and size."""
    found = [row for row in advice.rows if (row.strategy, row.ranks) == (strategy, ranks)]
    return found[0]
