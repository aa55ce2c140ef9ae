"""Rules on the GPUs that are visible to a rank."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hpc_train.lint.rule import RuleHit, Subject, rule


@rule(
    "HT309",
    "error",
    "CUDA_VISIBLE_DEVICES by local rank, and --gpus-per-task",
    why="With --gpus-per-task only its own GPU is visible to each rank, as device 0; "
    "CUDA_VISIBLE_DEVICES=3 then selects no device.",
    advice="do not set CUDA_VISIBLE_DEVICES, and request GPUs with --gpus-per-node",
)
def visible_devices_by_rank(subject: Subject) -> Iterator[RuleHit]:
    script = subject.script
    bound = script.asked.has("gpus-per-task") or any(
        launch.option("gpus-per-task") for launch in script.launches
    )
    for found in script.settings("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"):
        if bound and {"SLURM_LOCALID", "LOCAL_RANK"} & {*found.word.expanded, *found.word.held}:
            yield RuleHit(
                line=found.line,
                message=f"{found.name} selects a device that is not visible to the rank",
            )


@rule(
    "HT310",
    "info",
    "CUDA_VISIBLE_DEVICES set by the script",
    why="Slurm sets it to the GPUs of the job. Other numbers select GPUs of other jobs if no "
    "cgroup hides them, and otherwise hide the job's own GPUs.",
    advice="leave it out; ask for the GPUs with --gpus-per-node",
)
def visible_devices_by_hand(subject: Subject) -> Iterator[RuleHit]:
    script = subject.script
    for found in script.settings("CUDA_VISIBLE_DEVICES"):
        asked = script.asked.gpus_per_node or script.asked.has("gpus", "gpus-per-task")
        if asked and re.fullmatch(r"\d+(,\d+)*", found.value) and found.inside != "task":
            message = f"CUDA_VISIBLE_DEVICES={found.value} replaces what Slurm gives the job"
            yield RuleHit(line=found.line, message=message)


@rule(
    "HT311",
    "warning",
    "two lists of visible GPUs",
    why="ROCR_VISIBLE_DEVICES renumbers the devices before HIP_VISIBLE_DEVICES counts them: "
    "with both, ranks use other devices than intended, or none.",
    advice="set one of them",
)
def two_device_lists(subject: Subject) -> Iterator[RuleHit]:
    script = subject.script
    first = script.settings("ROCR_VISIBLE_DEVICES")
    for found in script.settings("HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"):
        if first and first[-1].value != found.value:
            message = f"{found.name} numbers the devices that ROCR_VISIBLE_DEVICES leaves visible"
            yield RuleHit(line=found.line, message=message)
