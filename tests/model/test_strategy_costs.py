"""The formulas of memory, traffic and bubble."""

import pytest

from hpc_train.model.strategy_costs import TrainingSize, idle_share, sent_bytes, state_bytes
from hpc_train.model.training_strategies import TrainingRequest

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


def test_only_pipelines_have_a_bubble() -> None:
    assert idle_share(request("ddp")) is None
    assert idle_share(request("naive")) == pytest.approx(3 / 4)
