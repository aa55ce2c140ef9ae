"""Peak memory of a rank of the reference trainer, measured by `tests.bench.bench_rank_memory`."""

from typing import NamedTuple

from hpc_train.advice.advice import Range
from hpc_train.advice.program import ProgramSize, gpt_parameters
from hpc_train.advice.rank_memory import GIB, rank_memory
from hpc_train.jobs.strategies import GPT_SHAPES, ModelName, TrainingRequest

MODEL: ModelName = "gpt-124m"


class Peak(NamedTuple):
    """The largest resident set [GiB] of the ranks of a strategy; `samples` of one forward pass."""

    strategy: str
    ranks: int
    samples: int
    gib: float


# On two cores with gloo, torch 2.13, fp32, AdamW, 2026-11-27; 3 steps, of fsdp 2.
PEAKS = (
    Peak("single", 1, 2, 4.769),
    Peak("ddp", 2, 1, 4.040),
    Peak("zero1", 2, 1, 3.424),
    Peak("fsdp", 2, 1, 3.066),
    Peak("hsdp", 4, 1, 3.181),
)

# The same with `MALLOC_MMAP_THRESHOLD_=131072`, 2026-11-28: glibc returns each freed array, so that
# the peak is that of the arrays, of libraries and of the buffers of gloo.
RETURNED_PEAKS = (Peak("fsdp", 2, 1, 2.386),)


def predicted(strategy: str, ranks: int, samples: int) -> Range:
    """Return the bounds of the memory of a rank [GiB] by the formulas."""
    program = ProgramSize(
        name=MODEL, model=MODEL, parameters=gpt_parameters(GPT_SHAPES[MODEL]), precision="fp32"
    )
    request = TrainingRequest(strategy=strategy, model=MODEL, world_size=ranks, device="cpu")
    found = rank_memory(request, program, samples)
    return found.whole.times(1 / GIB) if found is not None else Range()
