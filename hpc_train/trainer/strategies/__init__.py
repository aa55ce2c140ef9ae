"""Ways to train one model on several ranks; all give the same result.

Here: what each does to the model, its optimiser and its step.
Not here: data, events, and which ranks, models and batches a strategy accepts
(`hpc_train.jobs.strategies`).
"""

from __future__ import annotations

import importlib

from hpc_train.trainer.strategies.base import Strategy

# Module and class of each.
STRATEGIES = {
    "single": "ddp:Single",
    "dp": "ddp:Dp",
    "ddp": "ddp:Ddp",
    "zero1": "ddp:Zero1",
    "fsdp": "fsdp:Fsdp",
    "hsdp": "fsdp:Hsdp",
    "tensor": "tensor:TensorParallel",
    "context": "context:ContextParallel",
    "pipeline": "pipeline:Pipeline",
    "naive": "naive:Naive",
    "fsdp+tensor": "tensor:FsdpTensor",
    "pipeline+ddp": "pipeline:PipelineDdp",
    "pipeline+fsdp": "pipeline:PipelineFsdp",
}


def load_strategy(name: str) -> Strategy:
    """Return the strategy with that name; only its own module is imported."""
    module, _, attribute = STRATEGIES[name].partition(":")
    strategy: Strategy = getattr(importlib.import_module(f"{__name__}.{module}"), attribute)()
    return strategy
