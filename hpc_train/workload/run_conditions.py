"""This process -> the conditions that must match in every run of a series."""

from __future__ import annotations

import torch

from hpc_train.workload.process_group import Group


def conditions(group: Group) -> dict[str, str]:
    """Return versions and hardware, which do not depend on the number of ranks."""
    found = {"torch": torch.__version__.partition("+")[0], "device": group.device.type}
    if group.device.type != "cuda":
        return found
    if torch.version.cuda:
        found["cuda"] = torch.version.cuda
        found["nccl"] = ".".join(map(str, torch.cuda.nccl.version()))  # type: ignore[no-untyped-call]
    elif torch.version.hip:
        found["rocm"] = torch.version.hip
    found["gpu"] = torch.cuda.get_device_name(group.device)
    return found
