"""Activation checkpointing and compilation, block by block.

The order is that of torchtitan: tensor parallelism before both, fsdp and ddp after them.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import nn
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
from torch.utils.checkpoint import create_selective_checkpoint_contexts

from hpc_train.workload.models import BLOCKS

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


def prepare_blocks(model: nn.Sequential, checkpointing: str, compiled: str) -> None:
    """Change the blocks of a model in place.

    `checkpointing`: `full` keeps the input of a block only and computes the rest again in its
    backward pass, `selective` keeps products and attention as well, `none` all. `compiled`: `block`
    compiles each when it runs first; blocks of equal shape share what was compiled.
    """
    for name, layer in list(model.named_children()):
        if not isinstance(layer, BLOCKS):
            continue
        block: nn.Module = layer
        if checkpointing != "none":
            block = checkpoint_wrapper(layer, **_contexts(checkpointing))
            model.register_module(name, block)
        if compiled == "block":
            block.compile(backend=COMPILER)


def _contexts(checkpointing: str) -> dict[str, Any]:
    if checkpointing == "full":
        return {}
    kept = [getattr(torch.ops.aten, name).default for name in _KEPT]
    return {"context_fn": partial(create_selective_checkpoint_contexts, kept)}
