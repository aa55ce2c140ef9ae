"""Parameters and operations of the reference trainer's models, as torch counts them."""

from typing import Any

import pytest
from msgspec.structs import replace
from torch.utils.flop_counter import FlopCounterMode

from hpc_train.advice.program import RESNET50_PARAMETERS, gpt_flops, gpt_parameters
from hpc_train.jobs.strategies import (
    GPT_SHAPES,
    STRATEGIES,
    TrainingRequest,
    TrainingSize,
    batch_problem,
    idle_share,
    sent_bytes,
    state_bytes,
    strategy_problem,
)
from hpc_train.trainer.models import make_model, mean_loss
from tests.cases import cases

torch = pytest.importorskip("torch")


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


SIZE = TrainingSize(parameters=1000, optimizer="adamw", batch=8)
NCCL = TrainingSize(parameters=1000, optimizer="adamw", batch=8, backend="nccl")


def request(strategy: str, ranks: int = 4, **more: object) -> TrainingRequest:
    return TrainingRequest(strategy=strategy, model="gpt-tiny", world_size=ranks, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("strategy", "states", "gloo", "nccl"),
    [
        ("ddp", 16000, 6000, 6000),
        ("zero1", 10000, 9000, 9000),
        ("fsdp", 4000, 12000, 9000),
        ("hsdp", 8000, 10000, 8000),
        ("pipeline", 4000, 2 * 3 / 4 * 4 * 8 * 32 * 32, 2 * 3 / 4 * 4 * 8 * 32 * 32),
    ],
)
def test_states_and_traffic(strategy: str, states: float, gloo: float, nccl: float) -> None:
    asked = request(strategy)
    assert state_bytes(asked, SIZE) == pytest.approx(states)
    assert sent_bytes(asked, SIZE) == pytest.approx(gloo)
    assert sent_bytes(asked, NCCL) == pytest.approx(nccl)


@pytest.mark.parametrize(
    ("schedule", "idle"),
    [
        ("1F1B", 3 / 11),
        ("Interleaved1F1B", 3 / 19),
        ("ZBVZeroBubble", 3 / 51),
        ("DualPipeV", 6 / 54),
    ],
)
def test_the_bubble_of_four_ranks_and_eight_microbatches(schedule: str, idle: float) -> None:
    asked = request("pipeline", schedule=schedule, accumulate=8)
    assert idle_share(asked) == pytest.approx(idle)


FOUR = TrainingRequest(strategy="ddp", model="gpt-tiny", world_size=4, device="cpu")


@pytest.mark.parametrize(
    ("changes", "words"), cases("advice/impossible_strategies.yaml", "why_a_strategy_cannot_run")
)
def test_why_a_strategy_cannot_run(changes: dict[str, object], words: str) -> None:
    request = replace(FOUR, **changes)
    problem = strategy_problem(request)
    assert problem is not None
    assert problem.startswith(request.strategy)
    assert words in problem


@pytest.mark.parametrize("strategy", [s for s in STRATEGIES if s not in ("single", "dp")])
def test_four_ranks_carry_every_other_strategy(strategy: str) -> None:
    assert strategy_problem(replace(FOUR, strategy=strategy)) is None


def test_parts_of_the_global_batch() -> None:
    sizes = {name: replace(FOUR, strategy=name).data_size for name in STRATEGIES}
    assert {name for name, size in sizes.items() if size == 4} == {"ddp", "zero1", "fsdp", "hsdp"}
    assert {name for name, size in sizes.items() if size == 2} == {
        "fsdp+tensor",
        "pipeline+ddp",
        "pipeline+fsdp",
    }


def test_a_batch_that_micro_batches_do_not_fill() -> None:
    pipeline = replace(FOUR, strategy="pipeline")
    assert batch_problem(pipeline, 8) is None
    assert "10 samples into 4 equal micro-batches" in str(batch_problem(pipeline, 10))
    assert "use 8 or 12 samples" in str(batch_problem(pipeline, 10))
    assert "use 4 samples" in str(batch_problem(pipeline, 3))
