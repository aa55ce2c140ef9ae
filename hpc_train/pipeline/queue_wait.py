"""A job at several sizes -> when Slurm would start each, by `sbatch --test-only`."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from types import MappingProxyType

from msgspec.structs import replace

from hpc_train.data_folders import template_path
from hpc_train.errors import HpcTrainError
from hpc_train.model.job import SourcedJob
from hpc_train.model.machine_size import MachineSize
from hpc_train.model.site import SourcedSite
from hpc_train.model.study import Point
from hpc_train.model.value import Value
from hpc_train.pipeline.ask_slurm import SlurmJudge, slurm_judge
from hpc_train.pipeline.prepared import PreparedSite
from hpc_train.pipeline.render import prepare_points

_START = re.compile(r"\bto start at (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)", re.ASCII)


class QueueWaits(Value, frozen=True, kw_only=True):
    """Seconds until a job of so many ranks would start, and why some are not known."""

    seconds: Mapping[int, float] = MappingProxyType({})
    notes: tuple[str, ...] = ()


def queue_waits(
    job: SourcedJob,
    profile: Path,
    site: SourcedSite,
    machine: MachineSize,
    sizes: Sequence[int],
) -> QueueWaits:
    """Ask Slurm about the job at each size; nothing is submitted, a job id is used up.

    Raises:
        SpecError: sbatch is not installed here.
    """
    judge, folders = slurm_judge(), template_path(profile)
    place = {"": PreparedSite(profile=profile, site=site, folders=folders)}
    seconds: dict[int, float] = {}
    unknown: dict[str, list[int]] = {}
    for size in sizes:
        try:
            point = Point(axes={}, job=_of_size(job, machine, size))
            (prepared,), _ = prepare_points((point,), place, nested=False, plain=True)
        except HpcTrainError as failure:
            unknown.setdefault(failure.message, []).append(size)
            continue
        found = _wait(judge, prepared.script.text, site, prepared.plan.name)
        if isinstance(found, str):
            unknown.setdefault(found, []).append(size)
        else:
            seconds[size] = found
    return QueueWaits(seconds=seconds, notes=tuple(_notes(unknown, machine)))


def _notes(unknown: Mapping[str, Sequence[int]], machine: MachineSize) -> Iterator[str]:
    """Yield each reason once, with the sizes that it is of."""
    unit = "GPUs" if machine.gpus_per_node else "ranks"
    for reason, sizes in unknown.items():
        yield f"When {', '.join(map(str, sizes))} {unit} would start is unknown: {reason}."


def _of_size(job: SourcedJob, machine: MachineSize, ranks: int) -> SourcedJob:
    """Return the job on so many ranks; the strategy of the trainer does not matter to Slurm."""
    nodes = machine.nodes(ranks)
    each = -(-ranks // nodes)
    sized = replace(
        job.value.resources,
        nodes=nodes,
        gpus_per_node=each if machine.gpus_per_node else job.value.resources.gpus_per_node,
        tasks_per_node=each,
    )
    return replace(job, value=replace(job.value, resources=sized, trainer=None))


def _wait(judge: SlurmJudge, text: str, site: SourcedSite, name: str) -> float | str:
    """Return the seconds until a job would start, or why they are unknown."""
    answer = judge.judge(text, site.value, f"{name}.sbatch", "the job")
    start = _START.search(answer.words)
    if answer.outcome != "accepted" or start is None:
        return f"Slurm says {answer.words}"
    # Slurm prints the local time of the client.
    return max(0.0, datetime.fromisoformat(start[1]).timestamp() - time.time())
