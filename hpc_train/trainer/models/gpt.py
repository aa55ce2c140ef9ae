"""A decoder-only transformer like GPT-2, without dropout, with its own output matrix.

Dropout would draw other masks on each rank, and an output matrix that is also the embedding could
not be on another rank than it.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from hpc_train.jobs.strategies import GptShape

Attend = Callable[[Tensor, Tensor, Tensor], Tensor]


def make_gpt(shape: GptShape) -> nn.Sequential:
    """Return a GPT: tokens (n, t) to logits (n, t, vocabulary), t at most `shape.context`."""
    model = nn.Sequential()
    model.add_module("embedding", Embedding(shape))
    for number in range(shape.blocks):
        model.add_module(f"block{number}", TransformerBlock(shape))
    model.add_module("output", Output(shape))
    return model


def causal_attention(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Return the attention of each token to itself and those before; all (n, heads, t, size)."""
    return functional.scaled_dot_product_attention(query, key, value, is_causal=True)


class Embedding(nn.Module):
    """Tokens (n, t) to vectors (n, t, width); the first token has the position `first`."""

    def __init__(self, shape: GptShape) -> None:
        super().__init__()
        self.token = nn.Embedding(shape.vocabulary, shape.width)
        self.position = nn.Embedding(shape.context, shape.width)
        self.first = 0
        for table in (self.token, self.position):
            nn.init.normal_(table.weight, std=0.02)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the sum of both embeddings."""
        end = self.first + tokens.shape[1]
        positions = torch.arange(self.first, end, device=tokens.device)
        embedded: Tensor = self.token(tokens) + self.position(positions)
        return embedded


class Attention(nn.Module):
    """Causal self-attention; query, key and value are separate, so that heads can be divided."""

    def __init__(self, shape: GptShape) -> None:
        super().__init__()
        self.head_size = shape.width // shape.heads
        self.query = nn.Linear(shape.width, shape.width)
        self.key = nn.Linear(shape.width, shape.width)
        self.value = nn.Linear(shape.width, shape.width)
        self.output = nn.Linear(shape.width, shape.width)
        self.attend: Attend = causal_attention

    def forward(self, hidden: Tensor) -> Tensor:
        """Return (n, t, width) from (n, t, width)."""
        heads = [
            layer(hidden).unflatten(-1, (-1, self.head_size)).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        ]
        mixed: Tensor = self.output(self.attend(*heads).transpose(1, 2).flatten(2))
        return mixed


class Mlp(nn.Module):
    """Two linear layers with GELU between them, four times as wide inside."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, hidden: Tensor) -> Tensor:
        """Return (n, t, width) from (n, t, width)."""
        wide: Tensor = self.down(functional.gelu(self.up(hidden)))
        return wide


class TransformerBlock(nn.Module):
    """Attention and MLP, each after a normalisation and added to its input."""

    def __init__(self, shape: GptShape) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(shape.width)
        self.attention = Attention(shape)
        self.norm2 = nn.LayerNorm(shape.width)
        self.mlp = Mlp(shape.width)

    def forward(self, hidden: Tensor) -> Tensor:
        """Return (n, t, width) from (n, t, width)."""
        hidden = hidden + self.attention(self.norm1(hidden))
        mixed: Tensor = hidden + self.mlp(self.norm2(hidden))
        return mixed


class Output(nn.Module):
    """The last normalisation and the logits: (n, t, width) to (n, t, vocabulary)."""

    def __init__(self, shape: GptShape) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(shape.width)
        self.logits = nn.Linear(shape.width, shape.vocabulary, bias=False)

    def forward(self, hidden: Tensor) -> Tensor:
        """Return the logits."""
        logits: Tensor = self.logits(self.norm(hidden))
        return logits
