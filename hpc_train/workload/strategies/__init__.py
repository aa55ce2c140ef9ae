"""Ways to train one model on several ranks, one module each; all give the same result.

Here: what each does to the model, its optimiser and its step.
Not here: data, events, and which ranks, models and batches a strategy accepts
(`hpc_train.model.strategy_checks`).
"""

from __future__ import annotations

import importlib

from hpc_train.workload.strategies.base import Strategy

STRATEGIES = {
    "single": "hpc_train.workload.strategies.single:Single",
    "dp": "hpc_train.workload.strategies.dp:Dp",
    "ddp": "hpc_train.workload.strategies.ddp:Ddp",
    "zero1": "hpc_train.workload.strategies.zero1:Zero1",
    "fsdp": "hpc_train.workload.strategies.fsdp:Fsdp",
    "hsdp": "hpc_train.workload.strategies.hsdp:Hsdp",
    "tensor": "hpc_train.workload.strategies.tensor:TensorParallel",
    "context": "hpc_train.workload.strategies.context:ContextParallel",
    "pipeline": "hpc_train.workload.strategies.pipeline:Pipeline",
    "naive": "hpc_train.workload.strategies.naive:Naive",
    "fsdp+tensor": "hpc_train.workload.strategies.fsdp_tensor:FsdpTensor",
    "pipeline+ddp": "hpc_train.workload.strategies.pipeline_data:PipelineDdp",
    "pipeline+fsdp": "hpc_train.workload.strategies.pipeline_data:PipelineFsdp",
}


def load_strategy(name: str) -> Strategy:
    """Return the strategy with that name; only its own module is imported."""
    module, _, attribute = STRATEGIES[name].partition(":")
    strategy: Strategy = getattr(importlib.import_module(module), attribute)()
    return strategy
