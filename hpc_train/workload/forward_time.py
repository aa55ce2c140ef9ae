"""The seconds of the forward passes of a step: what a rank does while it waits for no other.

Where ranks exchange gradients, all of them take as long for a step as the slowest.
"""

from __future__ import annotations

import time
from typing import Any

import torch
from torch import nn
from torch.distributed.fsdp import FSDPModule
from torch.distributed.tensor import DTensor
from torch.nn.parallel import DistributedDataParallel

# Dimensions of a mesh along which parameters are gathered before they are used.
_GATHERED = {"shard", "replicate"}


class ForwardTime:
    """Counts from the moment when the module itself is called: DDP may send buffers before.

    A module of FSDP2 gathers its shards before its own forward pass, so its innermost modules are
    timed, without what they wait for. A module whose ranks compute together has no such time.
    """

    def __init__(self, model: nn.Module, device: torch.device) -> None:
        inner = model.module if isinstance(model, DistributedDataParallel) else model
        self._on_gpu = device.type == "cuda"
        parts = _parts_alone(inner)
        self._alone = bool(parts)
        self._marks: list[tuple[Any, Any]] = []
        self._began: Any = None
        for part in parts:
            # After the hook of FSDP2 that gathers, and before the one that frees.
            part.register_forward_pre_hook(self._begin)
            part.register_forward_hook(self._end, prepend=True)

    def seconds(self) -> float | None:
        """Return the time since the last call, when the device has done its work; None: unknown."""
        marks, self._marks = self._marks, []
        if not self._alone:
            return None
        if self._on_gpu:
            return sum(float(begin.elapsed_time(end)) for begin, end in marks) / 1000
        return float(sum(end - begin for begin, end in marks))

    def _begin(self, *_: object) -> None:
        self._began = self._now()

    def _end(self, *_: object) -> None:
        self._marks.append((self._began, self._now()))

    def _now(self) -> Any:
        if not self._on_gpu:
            return time.perf_counter()
        mark = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        mark.record(torch.cuda.current_stream())
        return mark


def _parts_alone(model: nn.Module) -> list[nn.Module]:
    """Return the modules in whose forward passes a rank waits for no other."""
    values = [value for value in model.parameters() if isinstance(value, DTensor)]
    if not values:
        return [model]
    names = {name for value in values for name in value.device_mesh.mesh_dim_names or ("",)}
    if not names <= _GATHERED:
        return []
    sharded = [module for module in model.modules() if isinstance(module, FSDPModule)]
    return [one for one in sharded if sum(part in sharded for part in one.modules()) == 1]
