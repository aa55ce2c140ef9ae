"""The seconds of the forward passes of a step: what a rank does while it waits for no other.

Where ranks exchange gradients, all of them take as long for a step as the slowest.
"""

from __future__ import annotations

import time
from typing import Any

import torch
from torch import nn
from torch.distributed.tensor import DTensor
from torch.nn.parallel import DistributedDataParallel


class ForwardTime:
    """Counts from the moment when the module itself is called: DDP may send buffers before.

    Modules with shards gather them in the forward pass, and have no such time.
    """

    def __init__(self, model: nn.Module, device: torch.device) -> None:
        inner = model.module if isinstance(model, DistributedDataParallel) else model
        self._on_gpu = device.type == "cuda"
        self._alone = not any(isinstance(value, DTensor) for value in inner.parameters())
        self._marks: list[tuple[Any, Any]] = []
        self._began: Any = None
        if self._alone:
            inner.register_forward_pre_hook(self._begin)
            inner.register_forward_hook(self._end)

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
