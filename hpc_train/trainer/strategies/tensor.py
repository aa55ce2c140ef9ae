"""tensor: each rank computes some attention heads and some columns of each MLP, for all samples.

With sequence parallelism: between them, each rank has a part of the tokens of every sample, so that
normalisations are not repeated. A block gathers tokens before both halves and reduce-scatters after
them.

fsdp+tensor: tensor inside groups of neighbouring ranks, fsdp between the groups. Tensor parallelism
needs the fastest links, so that its group should be inside a node.
"""

from __future__ import annotations

from functools import partial

from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
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

from hpc_train.trainer.models import mean_loss
from hpc_train.trainer.strategies.base import LocalStep, Make, Setup
from hpc_train.trainer.strategies.fsdp import on_last, shard


class TensorParallel:
    """Matrices and activations are divided by the number of ranks."""

    def build(self, make: Make, setup: Setup) -> TensorStep:
        """Return the model with divided layers."""
        group = setup.group
        mesh = init_device_mesh(group.device.type, (group.world_size,), mesh_dim_names=("tensor",))
        model = make().to(group.device)
        divide(model, mesh)
        for parameter in model.get_submodule("embedding").parameters():
            if isinstance(parameter, DTensor):
                # Keep a rank's part of the gradients, which torch leaves whole on each rank.
                divided = partial(DTensor.redistribute, placements=parameter.placements)
                parameter.register_hook(divided)  # type: ignore[no-untyped-call]
        setup.blocks(model)
        return TensorStep(model, setup.updates(model.parameters()), setup)


class FsdpTensor:
    """Matrices are divided twice, activations by the tensor dimension."""

    def build(self, make: Make, setup: Setup) -> TensorStep:
        """Return the model, first divided, then sharded."""
        mesh, model = setup.mesh(), make().to(setup.group.device)
        divide(model, mesh["tensor"])
        setup.blocks(model)
        sharded = shard(model, mesh["data"], setup)
        updates, rank = setup.updates(model.parameters()), mesh.get_local_rank("data")
        return TensorStep(model, updates, setup, data_rank=rank, sync=on_last(sharded))


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
    tokens, everywhere = Shard(1), Replicate()
    for name, layer in model.named_children():
        plan = _block(tokens, everywhere)
        if name == "embedding":
            plan = {
                "token": RowwiseParallel(input_layouts=everywhere, output_layouts=tokens),
                "position": RowwiseParallel(input_layouts=everywhere, output_layouts=Shard(0)),
            }
        elif name == "output":
            logits = ColwiseParallel(
                input_layouts=tokens, output_layouts=Shard(-1), use_local_output=False
            )
            plan = {"norm": SequenceParallel(), "logits": logits}
        parallelize_module(layer, mesh, plan)


def _block(tokens: Shard, everywhere: Replicate) -> dict[str, ParallelStyle]:
    """Return the plan of a block: one gather for query, key and value together."""
    gathered = {
        name: PrepareModuleInput(input_layouts=tokens, desired_input_layouts=everywhere)
        for name in ("attention", "mlp")
    }
    columns = ("attention.query", "attention.key", "attention.value", "mlp.up")
    return {
        "norm1": SequenceParallel(),
        "norm2": SequenceParallel(),
        **gathered,
        **{name: ColwiseParallel() for name in columns},
        "attention.output": RowwiseParallel(output_layouts=tokens),
        "mlp.down": RowwiseParallel(output_layouts=tokens),
    }
