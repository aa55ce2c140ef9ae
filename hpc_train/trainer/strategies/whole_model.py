"""Strategies in which each rank calls the whole model, or its part of every layer.

single: no communication; all others must equal it.
dp: one process copies the model to all its GPUs before each forward pass. torch recommends ddp
instead: the copies, the scattered batch and the gathered output pass through the first GPU, and one
Python process feeds them all.
ddp: each rank has a part of the batch; gradients are averaged. The all-reduce of a bucket of them
starts while the rest of the backward pass runs.
zero1: ddp, but each rank keeps the optimiser state of a part of the parameters. After its update it
broadcasts them: half as much traffic again as ddp.
context: each rank has a part of the tokens of every sample, and the whole model. Attention is the
only layer that needs other tokens: it gathers their keys and values. Ring attention, which passes
them around instead, exists in torch for CUDA alone. Gradients are averaged as by ddp.
fsdp: each rank keeps a shard of every parameter, its gradient and its optimiser state (FSDP2). A
layer's parameters are gathered before it runs, forward and backward, and freed after it; the
gradients are reduced and scattered. All ranks must start from the same weights: the shards of
different initialisations would be joined.
hsdp: fsdp inside a group of ranks, which should be a node, ddp between the groups: there the shards
of the gradients are averaged.
tensor: each rank computes some attention heads and some columns of each MLP, for all samples. With
sequence parallelism: between them, each rank has a part of the tokens of every sample, so that
normalisations are not repeated. A block gathers tokens before both halves and reduce-scatters after
them.
fsdp+tensor: tensor inside groups of neighbouring ranks, fsdp between the groups. Tensor parallelism
needs the fastest links, so that its group should be inside a node.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import torch
from torch import Tensor, distributed, nn
from torch.distributed._functional_collectives import all_gather_tensor_autograd
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    ParallelStyle,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    loss_parallel,
    parallelize_module,
)
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

from hpc_train.trainer.models import mean_loss
from hpc_train.trainer.models.gpt import Attention, Embedding
from hpc_train.trainer.optimizer import HALVES, sharded_policy
from hpc_train.trainer.strategies.base import LocalStep, Make, Setup


def single(make: Make, setup: Setup) -> LocalStep:
    """Return the model as it is: it fits one device."""
    model = setup.whole(make)
    return LocalStep(model, setup.updates(model.parameters()), setup)


def dp(make: Make, setup: Setup) -> LocalStep:
    """Return the model wrapped for all visible GPUs; its parameters are on the first one."""
    gpus = list(range(torch.cuda.device_count()))
    model = make().to(f"cuda:{gpus[0]}")
    setup.blocks(model)
    keep_type(model, setup.request.precision, "cuda")
    copied = nn.DataParallel(model, device_ids=gpus)
    return LocalStep(copied, setup.updates(copied.parameters()), setup)


def keep_type(model: nn.Module, precision: str, device: str) -> None:
    """Let a model compute in this precision in each thread: those of DataParallel have fp16."""
    half = HALVES.get(precision)
    if half is not None:
        model.register_forward_pre_hook(lambda *_: torch.set_autocast_dtype(device, half))


def ddp(make: Make, setup: Setup) -> LocalStep:
    """Return the model with averaged gradients; without a process group, as it is."""
    if setup.group.backend == "none":
        return single(make, setup)
    wrapped = replicate(make, setup)
    updates, rank = setup.updates(wrapped.parameters()), setup.group.rank
    return LocalStep(wrapped, updates, setup, data_rank=rank, sync=unless_last(wrapped))


def zero1(make: Make, setup: Setup) -> LocalStep:
    """Return the model with averaged gradients and a divided optimiser."""
    # It takes long to import, and warns of torch.jit.
    from torch.distributed.optim import ZeroRedundancyOptimizer

    wrapped, choice = replicate(make, setup), setup.optimizer
    parameters = list(wrapped.parameters())
    optimizer = ZeroRedundancyOptimizer(parameters, choice.kind, **choice.arguments(parameters))
    rank, updates = setup.group.rank, setup.updates_by(optimizer)
    return LocalStep(wrapped, updates, setup, data_rank=rank, sync=unless_last(wrapped))


def replicate(make: Make, setup: Setup) -> DistributedDataParallel:
    """Return the model with averaged gradients; they are views of the buckets, not copies."""
    device = setup.group.device
    return DistributedDataParallel(
        setup.whole(make),
        device_ids=[device] if device.type == "cuda" else None,
        gradient_as_bucket_view=True,
    )


def unless_last(model: DistributedDataParallel) -> Callable[[bool], AbstractContextManager[object]]:
    """Return `sync` of a step: `no_sync` must surround the forward pass as well."""
    return lambda last: nullcontext() if last else model.no_sync()


def context(make: Make, setup: Setup) -> LocalStep:
    """Return the model with attention over the tokens of all ranks."""
    wrapped = replicate(make, setup)
    for module in wrapped.modules():
        if isinstance(module, Attention):
            module.attend = gathered_attention
    updates = setup.updates(wrapped.parameters())
    return ContextStep(wrapped, updates, setup, sync=unless_last(wrapped))


class ContextStep(LocalStep):
    """Every rank receives whole samples, and takes its own tokens of them."""

    def step(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """Train on the tokens of this rank; the loss is theirs."""
        rank, size = self.setup.group.rank, inputs.shape[1] // self.setup.group.world_size
        for module in self.model.modules():
            if isinstance(module, Embedding):
                module.first = rank * size
        mine = slice(rank * size, (rank + 1) * size)
        return super().step(inputs[:, mine], targets[:, mine])


def gathered_attention(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Return the attention of this rank's tokens to all earlier ones; (n, heads, t, size).

    Not `distributed.nn.functional.all_gather`, whose gradients are wrong (pytorch#120386).
    """
    group = distributed.group.WORLD
    if group is None:
        raise RuntimeError("no process group")
    keys, values = (all_gather_tensor_autograd(x.contiguous(), 2, group) for x in (key, value))
    size = query.shape[2]
    first = distributed.get_rank() * size
    mine = torch.arange(first, first + size, device=query.device)
    everyone = torch.arange(keys.shape[2], device=query.device)
    seen = everyone[None, :] <= mine[:, None]
    return functional.scaled_dot_product_attention(query, keys, values, attn_mask=seen)


def fsdp(make: Make, setup: Setup) -> LocalStep:
    """Return the sharded model, over all ranks or, for hsdp, the last dimension of the mesh."""
    model, rank = make().to(setup.group.device), setup.group.rank
    setup.blocks(model)
    hybrid = setup.request.strategy == "hsdp"
    sharded = shard(model, setup.mesh() if hybrid else all_ranks(setup, "shard"), setup)
    # After it: the optimiser is made of the shards.
    updates = setup.updates(model.parameters())
    return LocalStep(model, updates, setup, data_rank=rank, sync=gathered_until_last(sharded))


def all_ranks(setup: Setup, name: str) -> DeviceMesh:
    """Return a mesh with all ranks in one dimension."""
    group = setup.group
    return init_device_mesh(group.device.type, (group.world_size,), mesh_dim_names=(name,))


def shard(model: nn.Sequential, mesh: DeviceMesh, setup: Setup, **options: Any) -> FSDPModule:
    """Shard each layer with parameters, then the model; a mesh of two replicates and shards.

    `options` are those of `fully_shard`.
    """
    policy = sharded_policy(setup.request.precision)
    for layer in model.children():
        if next(layer.parameters(), None) is not None:
            # Batch normalisation keeps fp32, like its running statistics; in one group for a layer,
            # as each costs a collective more in each pass.
            norms: list[nn.Module] = [m for m in layer.modules() if isinstance(m, nn.BatchNorm2d)]
            if norms and policy.param_dtype is not None:
                fully_shard(norms, mesh=mesh, **options)
            fully_shard(layer, mesh=mesh, mp_policy=policy, **options)
    return fully_shard(model, mesh=mesh, mp_policy=policy, **options)


def gathered_until_last(model: FSDPModule) -> Callable[[bool], AbstractContextManager[object]]:
    """Return `sync` of a step: parameters stay gathered until its last micro-batch.

    Without `set_reshard_after_backward` each micro-batch would gather them again.
    """

    def sync(last: bool) -> AbstractContextManager[object]:
        model.set_requires_gradient_sync(last)
        model.set_reshard_after_backward(last)
        return nullcontext()

    return sync


def tensor(make: Make, setup: Setup) -> LocalStep:
    """Return the model with matrices and activations divided by the number of ranks."""
    model = make().to(setup.group.device)
    divide(model, all_ranks(setup, "tensor"))
    for parameter in model.get_submodule("embedding").parameters():
        if isinstance(parameter, DTensor):
            # Keep a rank's part of the gradients, which torch leaves whole on each rank.
            divided = partial(DTensor.redistribute, placements=parameter.placements)
            parameter.register_hook(divided)  # type: ignore[no-untyped-call]
    setup.blocks(model)
    return TensorStep(model, setup.updates(model.parameters()), setup)


def fsdp_tensor(make: Make, setup: Setup) -> LocalStep:
    """Return the model, first divided by the tensor dimension, then sharded."""
    mesh, model = setup.mesh(), make().to(setup.group.device)
    divide(model, mesh["tensor"])
    setup.blocks(model)
    sync = gathered_until_last(shard(model, mesh["data"], setup))
    updates, rank = setup.updates(model.parameters()), mesh.get_local_rank("data")
    return TensorStep(model, updates, setup, data_rank=rank, sync=sync)


class TensorStep(LocalStep):
    """The logits stay divided by classes: the loss needs no rank to have all of them."""

    def step(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """Train on a part of a global batch that all ranks of the group have."""
        with loss_parallel():  # its backward pass must be inside as well
            return super().step(inputs, targets)

    def loss(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """Return the mean loss, as a local tensor."""
        with self.setup.autocast():
            logits = self.model(inputs)
        return mean_loss(logits, targets).full_tensor()  # type: ignore[attr-defined,no-any-return]


def divide(model: nn.Sequential, mesh: DeviceMesh) -> None:
    """Replace the parameters of a GPT by those that are divided over a mesh of one dimension."""
    tokens, whole = Shard(1), Replicate()
    columns = ("attention.query", "attention.key", "attention.value", "mlp.up")
    rows = ("attention.output", "mlp.down")
    # One gather for query, key and value together.
    gather = partial(PrepareModuleInput, input_layouts=tokens, desired_input_layouts=whole)
    block: dict[str, ParallelStyle] = {
        **{name: SequenceParallel() for name in ("norm1", "norm2")},
        **{name: gather() for name in ("attention", "mlp")},
        **{name: ColwiseParallel() for name in columns},
        **{name: RowwiseParallel(output_layouts=tokens) for name in rows},
    }
    embedding: dict[str, ParallelStyle] = {
        "token": RowwiseParallel(input_layouts=whole, output_layouts=tokens),
        "position": RowwiseParallel(input_layouts=whole, output_layouts=Shard(0)),
    }
    logits = ColwiseParallel(input_layouts=tokens, output_layouts=Shard(-1), use_local_output=False)
    output: dict[str, ParallelStyle] = {"norm": SequenceParallel(), "logits": logits}
    for name, layer in model.named_children():
        parallelize_module(layer, mesh, {"embedding": embedding, "output": output}.get(name, block))


STRATEGIES: dict[str, Callable[[Make, Setup], LocalStep]] = {
    "single": single,
    "dp": dp,
    "ddp": ddp,
    "zero1": zero1,
    "context": context,
    "fsdp": fsdp,
    "hsdp": fsdp,
    "tensor": tensor,
    "fsdp+tensor": fsdp_tensor,
}
