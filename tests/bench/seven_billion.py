"""A decoder of 6.7 billion parameters with the shape of Llama 2 7B: 27 GB of weights in fp32."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

VOCABULARY, WIDTH, BLOCKS, HEADS, TOKENS, HIDDEN = 32000, 4096, 32, 32, 2048, 11008
# Table and output; of a block four square matrices, three of the MLP, two norms; the last norm.
PARAMETERS = (
    2 * VOCABULARY * WIDTH + BLOCKS * (4 * WIDTH**2 + 3 * WIDTH * HIDDEN + 2 * WIDTH) + WIDTH
)


class Block(nn.Module):
    """Attention and a gated MLP, each behind a norm and beside a sum."""

    def __init__(self) -> None:
        super().__init__()
        self.before, self.between = nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)
        self.query, self.key, self.value, self.output = (
            nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4)
        )
        self.gate, self.up = (nn.Linear(WIDTH, HIDDEN, bias=False) for _ in range(2))
        self.down = nn.Linear(HIDDEN, WIDTH, bias=False)

    def forward(self, hidden: Tensor) -> Tensor:
        """Return (n, t, width) from (n, t, width)."""
        normed = self.before(hidden)
        query, key, value = (
            layer(normed).unflatten(-1, (HEADS, -1)).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        )
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        hidden = hidden + self.output(mixed.transpose(1, 2).flatten(2))
        normed = self.between(hidden)
        result: Tensor = hidden + self.down(functional.silu(self.gate(normed)) * self.up(normed))
        return result


def make_model() -> tuple[nn.Module, Tensor]:
    """Return the model and one sequence of tokens."""
    model = nn.Sequential(
        nn.Embedding(VOCABULARY, WIDTH),
        *(Block() for _ in range(BLOCKS)),
        nn.RMSNorm(WIDTH),
        nn.Linear(WIDTH, VOCABULARY, bias=False),
    )
    return model, torch.zeros(1, TOKENS, dtype=torch.long)
