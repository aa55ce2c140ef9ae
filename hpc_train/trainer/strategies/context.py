"""context: each rank has a part of the tokens of every sample, and the whole model.

Attention is the only layer that needs other tokens: it gathers their keys and values. Ring
attention, which passes them around instead, exists in torch for CUDA alone. Gradients are averaged
as by ddp.
"""

from __future__ import annotations

import torch
from torch import Tensor, distributed
from torch.distributed._functional_collectives import all_gather_tensor_autograd
from torch.nn import functional

from hpc_train.trainer.models.gpt import Attention, Embedding
from hpc_train.trainer.strategies.base import LocalStep, Make, Setup
from hpc_train.trainer.strategies.ddp import on_last, replicate


class ContextParallel:
    """Activations are divided by the number of ranks, the model is whole on each."""

    def build(self, make: Make, setup: Setup) -> ContextStep:
        """Return the model with attention over the tokens of all ranks."""
        wrapped = replicate(make, setup)
        for module in wrapped.modules():
            if isinstance(module, Attention):
                module.attend = gathered_attention
        return ContextStep(
            wrapped, setup.updates(wrapped.parameters()), setup, sync=on_last(wrapped)
        )


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
