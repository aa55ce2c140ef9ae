"""Rules on the places of ranks: cores far from one another or the GPU, adapters far from it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from hpc_train.lint.launch_commands import LaunchCommand
from hpc_train.lint.partition_match import queue_of
from hpc_train.lint.rule import RuleHit, Subject, rule
from hpc_train.model.core_binding import bound_cores, far_ranks

_SHOWN = 2
_OPTION = "--cpu-bind"


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
        line, value = _binding(launch)
        cores = bound_cores(value, found[1].numa_cpus)
        # Slurm or a variable may choose the GPU of a rank, and torchrun has several.
        chosen = launch.option("gpu-bind") or "VISIBLE_DEVICES" in script.text
        gpus = () if chosen or launch.starter == "torchrun" else range(len(cores))
        for said in islice(far_ranks(cores, found[1], gpus), _SHOWN):
            yield RuleHit(line=line, message=said)


def _binding(launch: LaunchCommand) -> tuple[int, str]:
    """Return line and value of --cpu-bind of srun, or of mpiexec of Cray PALS."""
    option = launch.option("cpu-bind") if launch.outer == "srun" else None
    if option is not None:
        return option.line, option.value or ""
    words = launch.words if launch.outer == "mpirun" else ()
    for index, word in enumerate(words):
        name, equals, value = word.text.partition("=")
        if name == _OPTION and (equals or words[index + 1 :]):
            return word.line, value if equals else words[index + 1].text
    return launch.line, ""


@rule(
    "HT214",
    "warning",
    "no adapter near a GPU",
    why="NCCL sends the data of a GPU over an adapter on another PCIe root or NUMA node if "
    "NCCL_IB_HCA leaves out those nearest to it. Checked where the profile states gpu_nics.",
    advice="name the adapters nearest to all GPUs, or leave NCCL_IB_HCA out: NCCL chooses the "
    "nearest; hpctrain doctor --topology on a node prints them",
)
def far_adapter(subject: Subject) -> Iterator[RuleHit]:
    site, script = subject.context.site, subject.script
    found = queue_of(site, script.asked).partition if site else None
    if found is None or subject.context.fabric not in (None, "infiniband", "roce"):
        return
    for variable in script.exported_values("NCCL_IB_HCA"):
        if "$" in variable.value:
            continue
        for gpu, names in enumerate(found[1].gpu_nics):
            if not any(_selected(name, variable.value) for name in names.split(",")):
                said = f"NCCL_IB_HCA={variable.value} leaves out {names}, nearest to GPU {gpu}"
                yield RuleHit(line=variable.line, message=said)
                break


def _selected(name: str, value: str) -> bool:
    """Whether NCCL_IB_HCA selects an adapter: prefixes, exact after `=`, exclusions after `^`."""
    words = value.removeprefix("^")
    exact = words.startswith("=")
    given = [word.partition(":")[0] for word in words.removeprefix("=").split(",") if word]
    matches = any(name == word if exact else name.startswith(word) for word in given)
    return matches != value.startswith("^")
