"""The optimizer of a training, and the precision it computes in."""

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, distributed, nn
from torch.distributed import ProcessGroup
from torch.distributed.fsdp import MixedPrecisionPolicy
from torch.distributed.tensor import DTensor

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


Parameters = Iterable[nn.Parameter]
# One kernel for all parameters; torch has them for these.
_FUSED = ("cuda", "cpu")


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizerChoice:
    """`sgd` with momentum 0.9, or `adamw` with the defaults of torch; one learning rate.

    `clip_norm` is the largest norm of all gradients together, None: any. In the first
    `warmup_steps` steps the learning rate grows linearly.
    """

    name: str
    learning_rate: float
    clip_norm: float | None = None
    warmup_steps: int = 0

    @property
    def kind(self) -> type[torch.optim.Optimizer]:
        """The class of torch."""
        return torch.optim.SGD if self.name == "sgd" else torch.optim.AdamW

    def arguments(self, parameters: Sequence[nn.Parameter]) -> dict[str, Any]:
        """Return its keyword arguments for these parameters."""
        momentum = {"momentum": 0.9} if self.name == "sgd" else {}
        fused = all(parameter.device.type in _FUSED for parameter in parameters)
        if self.name == "sgd":  # torch 2.13 has no fused SGD of shards
            fused = fused and not any(isinstance(p, DTensor) for p in parameters)
        return {"lr": self.learning_rate, "fused": fused, **momentum}

    def make(self, parameters: Parameters) -> torch.optim.Optimizer:
        """Return the optimiser of these parameters; those of a sharded model are its shards."""
        chosen = list(parameters)
        return self.kind(chosen, **self.arguments(chosen))

    def rate(self, step: int) -> float:
        """Return the learning rate of a step, counted from 1."""
        return self.learning_rate * min(1.0, step / max(1, self.warmup_steps))


class Updates:
    """The updates of a model, one for each step.

    `stages` are the ranks with the other layers of the model, if it is divided so: the norm of the
    gradients is that of all of them. `done` counts the steps, `grad_norm` is the norm before the
    last one, if gradients are clipped.
    """

    def __init__(
        self,
        optimizer: torch.optim.Optimizer,
        choice: OptimizerChoice,
        scaler: torch.amp.GradScaler,
        stages: ProcessGroup | None = None,
    ) -> None:
        self.optimizer, self.choice, self.stages = optimizer, choice, stages
        self.scaler = scaler
        self.done = 0
        self.grad_norm: Tensor | None = None

    def resume(self, done: int, loss_scale: float | None) -> None:
        """Continue after `done` steps; `loss_scale` is that of the last one, if it was saved."""
        self.done = done
        if loss_scale is not None and self.scaler.is_enabled():
            self.scaler.load_state_dict({**self.scaler.state_dict(), "scale": loss_scale})

    def backward(self, loss: Tensor) -> None:
        """Add the gradients of a micro-batch."""
        scaled: Any = self.scaler.scale(loss)
        scaled.backward()

    def apply(self) -> None:
        """Update the parameters by their gradients, which remain."""
        self.done += 1
        for group in self.optimizer.param_groups:
            group["lr"] = self.choice.rate(self.done)
        if self.choice.clip_norm is not None:
            self.scaler.unscale_(self.optimizer)
            mine = [p for group in self.optimizer.param_groups for p in group["params"]]
            self.grad_norm = clip_gradients(mine, self.choice.clip_norm, self.stages)
        self.scaler.step(self.optimizer)
        self.scaler.update()


def clip_gradients(
    parameters: Sequence[nn.Parameter], most: float, stages: ProcessGroup | None = None
) -> Tensor:
    """Scale all gradients so that their 2-norm is at most `most`; return the norm before.

    The parameters of a rank are all whole, or all divided over the same mesh, whose ranks then sum
    the squares. `stages` are the ranks with the other layers. Every rank must call it.
    """
    gradients = [p.grad for p in parameters if p.grad is not None]
    norm = nn.utils.get_total_norm(gradients)
    if isinstance(norm, DTensor):
        norm = norm.full_tensor()
    if stages is not None:
        squares = norm.square()
        distributed.all_reduce(squares, group=stages)
        norm = squares.sqrt()
    nn.utils.clip_grads_with_norm_(parameters, most, norm)
    return norm
