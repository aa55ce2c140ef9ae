"""Gradients scaled to a largest norm, which is that of the whole model wherever its parts are."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, distributed, nn
from torch.distributed import ProcessGroup
from torch.distributed.tensor import DTensor


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
