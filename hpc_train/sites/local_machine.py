"""The local machine: the cores and GPUs that this process may use."""

from __future__ import annotations

import os
from pathlib import Path

from hpc_train.model.value import Value


class Machine(Value, frozen=True, kw_only=True):
    """Cores in this process's affinity mask, and NVIDIA devices."""

    cpus: int
    gpus: int


def this_machine() -> Machine:
    """Count cores and GPUs; CUDA_VISIBLE_DEVICES restricts the GPUs as it does for torch."""
    devices = len(list(Path("/dev").glob("nvidia[0-9]*")))
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        devices = min(devices, len([item for item in visible.split(",") if item.strip()]))
    return Machine(cpus=len(os.sched_getaffinity(0)), gpus=devices)
