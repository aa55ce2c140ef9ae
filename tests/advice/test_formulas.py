"""Memory, communication and step by formulas: known values, and what must be ordered."""

import pytest
from hypothesis import given, strategies as st
from msgspec.structs import replace

from hpc_train.advice.advice import Range, exactly
from hpc_train.advice.rank_memory import rank_memory
from hpc_train.advice.rows import communication_time
from hpc_train.advice.step_time import compute_time, model_flops_utilisation, peak_of, step_time
from hpc_train.jobs.strategies import TrainingRequest
from tests.advice.questions import A100, CPUS, gpt, other, step


def request(strategy: str, ranks: int, **more: object) -> TrainingRequest:
    return TrainingRequest(
        strategy=strategy,
        model="gpt-124m",
        world_size=ranks,
        device="cuda",
        **more,  # type: ignore[arg-type]
    )


def test_memory_by_kind() -> None:
    """GPT of 163 M parameters, AdamW, bf16: 16 bytes a parameter, 32 bytes of an activation."""
    program = gpt()
    found = rank_memory(request("ddp", 4, precision="bf16"), program, 8)
    assert found is not None
    assert found.states == exactly(16.0 * program.parameters)  # type: ignore[operator]
    assert found.activations.low == 32 * 8 * 1024 * 768 * 12
    assert found.logits == Range(low=8.0 * 8 * 1024 * 50304, high=12.0 * 8 * 1024 * 50304)
    assert found.gathered == found.buckets == exactly(0.0)
    assert found.whole.low == sum(bounds.low for bounds in found.kinds.values())


@pytest.mark.parametrize(("strategy", "late"), [("ddp", 0.0), ("fsdp", 1.0)])
def test_gradients_of_earlier_micro_batches_exist_from_the_start(
    strategy: str, late: float
) -> None:
    """Whole ones: those of fsdp are made anew, 4 bytes of each of 1e9 parameters over 4 ranks."""
    found = rank_memory(request(strategy, 4, accumulate=2), other(1e9), 8)
    assert found is not None
    assert found.late_gradients == late * 4 * 1e9 / 4


def test_without_a_shape_activations_have_no_upper_bound() -> None:
    found = rank_memory(request("ddp", 4), other(1e9), 8)
    assert found is not None
    assert found.whole.high is None
    assert found.whole.low >= 16e9
    assert found.buckets == Range(low=0.0, high=4e9)
    assert rank_memory(request("ddp", 4), other(None), 8) is None


@pytest.mark.parametrize(
    ("ranks", "low", "high"),
    [
        # 1.5 GB over 300 GB/s; 65 % of them, and 40 calls of 1.5 x 28.8 us.
        (4, 1.5 / 300, 1.5 / (0.65 * 300) + 40 * 1.5 * 28.8e-6),
        # Each node sends half of 16/15 x 1.5 GB by 100 GB/s.
        (16, 1.6 * 3 / 4 / 100, 1.5 / 70 + 40 * 1.5 * (8.4 + 24 * 3.4 + 6 * 14) * 1e-6),
    ],
)
def test_the_time_of_an_all_reduce(ranks: int, low: float, high: float) -> None:
    program = other(1e9 / 4)
    found = communication_time(request("ddp", ranks), 1.5e9, program, A100)
    assert found.low == pytest.approx(low, rel=1e-6)
    assert found.high == pytest.approx(high, rel=1e-6)


def test_a_link_that_is_not_known_has_no_upper_bound() -> None:
    unknown = replace(A100, node_link=None)
    assert communication_time(request("ddp", 16), 1e9, gpt(), unknown).high is None
    assert communication_time(request("ddp", 4), 1e9, gpt(), unknown).high is not None
    assert communication_time(request("ddp", 4), 1e9, gpt(), CPUS) == Range()
    assert communication_time(request("single", 1), 0.0, gpt(), A100) == exactly(0.0)


def test_the_step_is_between_both_at_once_and_one_after_the_other() -> None:
    assert step_time(exactly(2), Range(low=0.5, high=1)) == Range(low=2, high=3)
    assert step_time(exactly(2), Range(low=5, high=6)) == Range(low=5, high=8)
    assert step_time(Range(low=2), exactly(1)).high is None


@given(st.floats(1e-6, 1e6), st.floats(0, 1e6), st.floats(1, 10), st.floats(0, 1))
def test_a_lower_bound_is_never_above_the_upper(
    compute: float, least: float, factor: float, waits: float
) -> None:
    found = step_time(exactly(compute), Range(low=least, high=least * factor), waits)
    assert found.high is not None
    assert found.low <= found.high * (1 + 1e-12)


def test_compute_from_a_measurement_or_from_operations() -> None:
    program = gpt()
    assert compute_time(program, A100, 4, 64, step(2.0)) == exactly(0.5)
    by_peak = compute_time(program, A100, 4, 64)
    assert by_peak.high is None
    assert by_peak.low == pytest.approx(64 * 8.75167e11 / (4 * 312e12), rel=1e-4)
    assert compute_time(other(), A100, 4, 64) == Range()


def test_the_share_of_the_peak() -> None:
    assert model_flops_utilisation(gpt(), A100, step(1.0)) == pytest.approx(0.1795, rel=1e-3)
    # Convolutions of torch run as TF32, products of matrices of the reference trainer do not.
    assert peak_of(A100, other()) == 156
    assert peak_of(A100, gpt(precision="fp32")) == 19.5
    assert peak_of(CPUS, gpt()) is None
    assert model_flops_utilisation(gpt(), CPUS, step(1.0)) is None


def test_zero1_has_twice_the_collectives_of_ddp() -> None:
    """Gradients as ddp, then the parameters; each call has its latency."""
    waits = {
        name: (communication_time(request(name, 4), 1e9, gpt(), A100).high or 0.0)
        - 1e9 / (0.65 * 300e9)
        for name in ("ddp", "zero1")
    }
    assert waits["zero1"] == pytest.approx(2 * waits["ddp"])


def test_switches_add_from_hopper_on() -> None:
    """An H100 has 450 GB/s; an all-reduce in the switch sends about half."""
    sent = 1.0e9
    low = {
        link: communication_time(request("ddp", 4), sent, gpt(), replace(A100, gpu_link=link)).low
        for link in (449.0, 450.0)
    }
    assert low[449.0] == pytest.approx(sent / 449e9)
    assert low[450.0] == pytest.approx(sent / (1.75 * 450e9))
