"""Parameters and operations of the reference trainer's models, as torch counts them."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch.utils.flop_counter import FlopCounterMode  # noqa: E402

from hpc_train.model.program_size import (  # noqa: E402
    RESNET50_PARAMETERS,
    gpt_flops,
    gpt_parameters,
)
from hpc_train.model.training_strategies import GPT_SHAPES  # noqa: E402
from hpc_train.workload.models import make_model, mean_loss  # noqa: E402


def on_meta(name: str, vocabulary: int) -> Any:
    with torch.device("meta"):
        return make_model(name, channels=3, classes=vocabulary, width=48, dtype=torch.float32)


@pytest.mark.parametrize("name", ["gpt-tiny", "gpt-mini", "gpt-124m", "gpt-1.5b"])
def test_the_parameters_of_a_gpt(name: str) -> None:
    shape = GPT_SHAPES[name]
    model = on_meta(name, shape.vocabulary)
    assert sum(one.numel() for one in model.parameters()) == gpt_parameters(shape)


def test_the_parameters_of_resnet50() -> None:
    assert sum(one.numel() for one in on_meta("resnet50", 1000).parameters()) == RESNET50_PARAMETERS


def test_the_operations_of_a_gpt() -> None:
    shape = GPT_SHAPES["gpt-mini"]
    model = on_meta("gpt-mini", shape.vocabulary)
    tokens = torch.zeros(2, shape.context, dtype=torch.long, device="meta")
    with FlopCounterMode(display=False) as counter:
        loss: Any = mean_loss(model(tokens), tokens)
        loss.backward()
    # The counter has the attention's backward pass without computing the forward one again.
    assert counter.get_total_flops() == pytest.approx(2 * gpt_flops(shape), rel=0.02)
