"""The protocol of a strategy, and the step that most strategies share."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.distributed import ProcessGroup
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import FSDPModule
from torch.distributed.tensor import DTensor
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import create_selective_checkpoint_contexts

from hpc_train.jobs.strategies import TrainingRequest
from hpc_train.trainer.models import BLOCKS, mean_loss
from hpc_train.trainer.optimizer import OptimizerChoice, Parameters, Updates, autocast, loss_scaler
from hpc_train.trainer.process_group import RankGroup

# Makes the whole model on the CPU, the same on each rank.
Make = Callable[[], nn.Sequential]
# Products of matrices, and attention: most of the operations, a small part of the activations.
_KEPT = (
    "mm",
    "bmm",
    "addmm",
    "_scaled_dot_product_efficient_attention",
    "_scaled_dot_product_flash_attention",
    "_scaled_dot_product_flash_attention_for_cpu",
    "_scaled_dot_product_cudnn_attention",
    "convolution",
)
COMPILER = "inductor"
CHECKPOINT_PREFIX = "_checkpoint_wrapped_module."


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What a strategy builds from."""

    group: RankGroup
    request: TrainingRequest
    optimizer: OptimizerChoice

    def autocast(self) -> AbstractContextManager[object]:
        """Return the context of a forward pass; fsdp has its own types instead."""
        if "fsdp" in self.request.strategy or self.request.strategy == "hsdp":
            return nullcontext()
        return autocast(self.request.precision, self.group.device)

    def blocks(self, model: nn.Sequential) -> None:
        """Checkpoint and compile the blocks of a model in place, as requested.

        `full` keeps the input of a block only and computes the rest again in its backward pass,
        `selective` keeps products and attention as well. Compiled blocks of equal shape share what
        was compiled. As in torchtitan, tensor parallelism is before both, fsdp and ddp after them.
        """
        request, contexts = self.request, dict[str, Any]()
        if request.checkpointing == "selective":
            kept = [getattr(torch.ops.aten, name).default for name in _KEPT]
            contexts["context_fn"] = partial(create_selective_checkpoint_contexts, kept)
        for name, block in list(model.named_children()):
            if not isinstance(block, BLOCKS):
                continue
            if request.checkpointing != "none":
                model.register_module(name, checkpoint_wrapper(block, **contexts))
            if request.compile == "block":
                model.get_submodule(name).compile(backend=COMPILER)

    def whole(self, make: Make) -> nn.Sequential:
        """Return the whole model on this rank's device, its blocks prepared.

        On CUDA the channels of convolutions are last in memory, as its tensor cores read them.
        """
        model = make()
        if self.group.device.type == "cuda":
            model = model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        model = model.to(self.group.device)
        self.blocks(model)
        return model

    def mesh(self) -> DeviceMesh:
        """Return the ranks in the two dimensions that the request has."""
        sizes = self.request.sizes
        return init_device_mesh(
            self.group.device.type, tuple(sizes.values()), mesh_dim_names=tuple(sizes)
        )

    def updates(self, parameters: Parameters, stages: ProcessGroup | None = None) -> Updates:
        """Return the updates of these parameters; `stages` are the ranks with other layers."""
        optimizer = self.optimizer.make(parameters)
        return self.updates_by(optimizer, stages)

    def updates_by(
        self, optimizer: torch.optim.Optimizer, stages: ProcessGroup | None = None
    ) -> Updates:
        """Return the updates by an optimiser."""
        scaler = loss_scaler(self.request.precision, self.group.device)
        return Updates(optimizer, self.optimizer, scaler, stages)


class ParallelModel(Protocol):
    """A model on this rank, ready to train; `data_rank` numbers the parts of the global batch.

    `model` has the layers of this rank, with their names in the whole model.
    """

    model: nn.Module
    data_rank: int
    updates: Updates

    def step(self, inputs: Tensor, targets: Tensor) -> Tensor | None:
        """Train on this rank's part of a global batch; return its mean loss, if it is here."""
        ...

    def state(self, *, gradients: bool = False) -> dict[str, Tensor]:
        """Return all parameters and buffers, or the gradients of the last step, by name.

        Every rank must call it; on each parameters and gradients are whole and the same.
        """
        ...


class LocalStep:
    """The step of a strategy in which each rank calls the whole model.

    `sync` receives whether a micro-batch is the last one of the step, and returns the context of
    its forward and backward pass: gradients are exchanged only after the last.
    """

    def __init__(
        self,
        model: nn.Module,
        updates: Updates,
        setup: Setup,
        *,
        data_rank: int = 0,
        sync: Callable[[bool], AbstractContextManager[object]] = lambda last: nullcontext(),
    ) -> None:
        self.model, self.updates, self.setup = model, updates, setup
        self.data_rank, self.sync = data_rank, sync
        self.forward = ForwardTime(model, setup.group.device)

    def step(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """Train on this rank's part of a global batch; return its mean loss."""
        self.updates.optimizer.zero_grad()
        if inputs.device.type == "cuda" and inputs.dim() == 4:
            inputs = inputs.contiguous(memory_format=torch.channels_last)
        count = self.setup.request.microbatches
        parts = list(zip(inputs.chunk(count), targets.chunk(count), strict=True))
        total = torch.zeros((), dtype=torch.float64, device=inputs.device)
        for number, (some_inputs, some_targets) in enumerate(parts, start=1):
            with self.sync(number == count):
                loss = self.loss(some_inputs, some_targets) / count
                self.updates.backward(loss)
            total += loss.detach()
        self.updates.apply()
        return total

    def loss(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """Return the mean loss of a micro-batch."""
        with self.setup.autocast():
            return mean_loss(self.model(inputs), targets)

    def state(self, *, gradients: bool = False) -> dict[str, Tensor]:
        """Return all parameters or gradients, whole and by name."""
        return whole_tensors(self.model, gradients=gradients)


def whole_tensors(model: nn.Module, *, gradients: bool = False) -> dict[str, Tensor]:
    """Return copies of parameters and buffers, or of gradients, by name; shards are gathered."""
    found = {} if gradients else {own_name(n): b.clone() for n, b in model.named_buffers()}
    for name, parameter in model.named_parameters():
        value = parameter.grad if gradients else parameter.detach()
        if value is None:
            continue
        if isinstance(value, DTensor):
            value = value.full_tensor()
        found[own_name(name)] = value.clone()
    return found


def own_name(name: str) -> str:
    """Return the name of a parameter in the model, without those of modules around it."""
    return name.removeprefix("module.").replace(CHECKPOINT_PREFIX, "")


# The seconds of the forward passes of a step: what a rank does while it waits for no other.
#
# Where ranks exchange gradients, all of them take as long for a step as the slowest.

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
