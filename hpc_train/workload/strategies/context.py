"""context: each rank has a part of the tokens of every sample, and the whole model.

Attention is the only layer that needs other tokens: it gathers their keys and values. Ring
attention, which passes them around instead, exists in torch for CUDA alone. Gradients are averaged
as by ddp.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, distributed, nn
from torch.distributed._functional_collectives import all_gather_tensor_autograd
from torch.nn import functional

from hpc_train.workload.models.gpt import Attention, Embedding
from hpc_train.workload.optimizer import Updates
from hpc_train.workload.strategies.base import CheckedStrategy, LocalStep, Setup
from hpc_train.workload.strategies.ddp import on_last, replicate


class ContextParallel(CheckedStrategy):
    """Activations are divided by the number of ranks, the model is whole on each."""

    def build(self, make: Callable[[], nn.Sequential], setup: Setup) -> ContextStep:
        """Return the model with attention over the tokens of all ranks."""
        group, model = setup.group, make().to(setup.group.device)
        for module in model.modules():
            if isinstance(module, Attention):
                module.attend = gathered_attention
        setup.blocks(model)
        wrapped = replicate(model, setup)
        updates = setup.updates(wrapped.parameters())
        return ContextStep(wrapped, updates, setup, sync=on_last(wrapped), rank=group.rank)


class ContextStep(LocalStep):
    """Every rank receives whole samples, and takes its own tokens of them."""

    def __init__(
        self,
        model: nn.parallel.DistributedDataParallel,
        updates: Updates,
        setup: Setup,
        *,
        sync: Callable[[bool], object],
        rank: int,
    ) -> None:
        super().__init__(model, updates, setup, sync=sync)  # type: ignore[arg-type]
        self.rank = rank

    def step(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """Train on the tokens of this rank; the loss is theirs."""
        size = inputs.shape[1] // self.setup.group.world_size
        for module in self.model.modules():
            if isinstance(module, Embedding):
                module.first = self.rank * size
        mine = slice(self.rank * size, (self.rank + 1) * size)
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
