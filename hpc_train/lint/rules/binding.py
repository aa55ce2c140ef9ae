"""A rule on the binding of ranks: cores far from one another, or from the rank's GPU."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from hpc_train.lint.partition_match import queue_of
from hpc_train.lint.rule import RuleHit, Subject, rule
from hpc_train.model.core_binding import bound_cores, far_ranks

_SHOWN = 2


@rule(
    "HT213",
    "warning",
    "binding that crosses NUMA nodes",
    why="A rank reads its data and feeds its GPU through the link between processors if its cores "
    "are on several NUMA nodes, or on another one than its GPU. Checked where the profile states "
    "numa_cpus of the partition, and gpu_numa for the GPUs.",
    advice="order the masks as the GPUs; hpctrain doctor --topology on a node prints both",
)
def far_binding(subject: Subject) -> Iterator[RuleHit]:
    site, script = subject.context.site, subject.script
    found = queue_of(site, script.asked).partition if site else None
    if found is None or not found[1].numa_cpus:
        return
    for launch in script.launches:
        option = launch.option("cpu-bind") if launch.outer == "srun" else None
        if option is None or not option.value:
            continue
        cores = bound_cores(option.value)
        # Slurm or a variable may choose the GPU of a rank, and torchrun has several.
        chosen = launch.option("gpu-bind") or "VISIBLE_DEVICES" in script.text
        gpus = () if chosen or launch.starter == "torchrun" else range(len(cores))
        for said in islice(far_ranks(cores, found[1], gpus), _SHOWN):
            yield RuleHit(line=option.line, message=said)
