"""Parameters and operations of a model, counted on the device `meta`: nothing is allocated."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from hpc_train.model.operations import FLOPS, PARAMETERS
from hpc_train.model.training_strategies import MESHES, TrainingRequest
from hpc_train.workload.emit import emit
from hpc_train.workload.precision import parameter_type
from hpc_train.workload.trainer_options import Options
from hpc_train.workload.training_data import TrainingData


def model_conditions(make: Callable[[], nn.Module], sample: torch.Tensor) -> dict[str, int]:
    """Return the number of parameters, and FLOP of a training step with one sample (1, ...).

    Matrix products and convolutions, forward and backward, without recomputed activations
    (torch.utils.flop_counter).
    """
    with torch.random.fork_rng(devices=[]), torch.device("meta"):
        model = make()
    with FlopCounterMode(display=False) as counter:
        model(sample.to("meta")).sum().backward()
    parameters = sum(parameter.numel() for parameter in model.parameters())
    return {PARAMETERS: parameters, FLOPS: counter.get_total_flops()}


def report_model(
    options: Options,
    request: TrainingRequest,
    make: Callable[[], nn.Module],
    train_set: TrainingData,
) -> None:
    """Emit the strategy, and the size of the model, as conditions of the run."""
    cpu = torch.device("cpu")
    first = train_set.__getitems__([0])
    sample, _ = train_set.prepare(first, cpu, parameter_type(options.precision))
    stated = {"strategy": options.strategy, "optimizer": options.optimizer}
    if request.strategy in MESHES:
        stated["mesh"] = ",".join(map(str, request.sizes.values()))
    if request.strategy.startswith("pipeline"):
        stated["microbatches"] = str(request.microbatches)
    emit(event="conditions", conditions={**stated, **model_conditions(make, sample)})
