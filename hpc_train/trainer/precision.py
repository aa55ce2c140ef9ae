"""Types of numbers of a training: of its parameters, its operations, and its communication.

Parameters and optimiser state are fp32 (fp64 for comparisons). With bf16 and fp16 autocast chooses
the type of each operation; fsdp instead gathers all parameters in that type and reduces their
gradients in fp32. fp16 needs a scaled loss, because small gradients become zero in it.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch
from torch.distributed.fsdp import MixedPrecisionPolicy

HALVES = {"bf16": torch.bfloat16, "fp16": torch.float16}


def parameter_type(precision: str) -> torch.dtype:
    """Return the type of the parameters, and of images."""
    return torch.float64 if precision == "fp64" else torch.float32


def autocast(precision: str, device: torch.device) -> AbstractContextManager[object]:
    """Return the context of a forward pass whose operations choose their type."""
    half = HALVES.get(precision)
    return nullcontext() if half is None else torch.autocast(device.type, half)


def sharded_policy(precision: str) -> MixedPrecisionPolicy:
    """Return the types of parameters that `fully_shard` divides."""
    half = HALVES.get(precision)
    if half is None:
        return MixedPrecisionPolicy()
    return MixedPrecisionPolicy(param_dtype=half, reduce_dtype=torch.float32)


def loss_scaler(precision: str, device: torch.device) -> torch.amp.GradScaler:
    """Return the scaler of the loss, which has no effect with another type than fp16.

    It skips a step whose gradients are not finite; with fsdp all ranks skip it.
    """
    return torch.amp.GradScaler(device.type, enabled=precision == "fp16")
