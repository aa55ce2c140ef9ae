"""What a row has of measurements, batches, checkpointing and micro-batches."""

import pytest
from msgspec.structs import replace

from hpc_train.advice.advice import MeasuredStep
from hpc_train.advice.step_time import batch_of
from hpc_train.advice.verdicts import advise
from tests.advice.questions import A100, ask, gpt, other, row_of, step


def test_a_measured_point_is_the_measurement() -> None:
    measured = (step(3.6), step(1.0, 4))
    row = row_of(advise(ask(gpt(), measured=measured)), "ddp", 4)
    assert row.measured
    assert (row.step.low, row.step.high) == (1.0, 1.0)
    assert row.speedup is not None
    assert row.speedup.high == pytest.approx(3.6)


def test_a_measured_peak_replaces_unknown_activations() -> None:
    measured = (step(1.0, batch=256, peak_memory_gib=30.0),)
    row = row_of(advise(ask(other(1e9), measured=measured)), "fsdp", 4)
    states = 16e9 / 2**30
    assert row.memory is not None
    assert row.memory.activations.high == pytest.approx((30 - states) * 2**30, rel=1e-6)
    assert row.memory.activations.low == pytest.approx((30 - states) * 2**30 / 4, rel=1e-6)


def test_a_batch_of_each_rank_grows_with_the_ranks() -> None:
    program = gpt("gpt-1.5b", global_batch=None, batch=8)
    ddp = row_of(advise(ask(program, A100, 1, 4, measured=(step(1.0, batch=8),))), "ddp", 4)
    assert (ddp.batch, ddp.end) == (32, None)
    assert ddp.speedup is not None
    assert ddp.speedup.high == pytest.approx(4)


def test_what_is_computed_again_takes_its_time() -> None:
    """Without checkpointing not even one sample fits; with it, a forward pass is done twice."""
    tight = replace(A100, least_gib=33.2, most_gib=33.2)
    program, measured = gpt("gpt-1.5b", global_batch=8), (step(1.0, batch=8),)
    row, plain = (
        row_of(advise(ask(program, machine, 1, 2, measured=measured)), "ddp", 2)
        for machine in (tight, replace(A100, least_gib=80, most_gib=80))
    )
    assert (row.change, plain.change) == ("micro-batches of 2 and activation checkpointing", "")
    assert row.step.low == plain.step.low
    assert row.step.high is not None
    assert plain.step.high is not None
    assert row.step.high - plain.step.high == pytest.approx(0.5 * 1.07 / 3, rel=1e-6)


def test_micro_batches_of_fsdp_keep_whole_gradients() -> None:
    """Until the last micro-batch, which scatters them: then each rank has 2 + 4 bytes of each."""
    program = gpt("gpt-1.5b", global_batch=32)
    whole = 6.0 * (program.parameters or 0) / 2**30
    kinds = {}
    for accumulate in (None, 4):
        rows = advise(ask(replace(program, accumulate=accumulate), A100, 4)).rows
        row = next(row for row in rows if row.strategy == "fsdp")
        assert row.memory is not None
        gathered = row.memory.gathered
        assert gathered.high is not None
        kinds[accumulate] = (gathered.low / 2**30, gathered.high / 2**30)
    assert kinds[4] == pytest.approx((whole, whole))
    # The table and a block in bf16; then also the gradients of the table, and their copy in fp32.
    table, block = (50304 + 1024) * 1600, 12 * 1600**2 + 13 * 1600
    least = 2 * (table + block)
    assert kinds[None] == pytest.approx((least / 2**30, (least + 6 * table) / 2**30))


def test_what_ran_fits_on_more_ranks_with_as_many_samples() -> None:
    """Not with more samples of a rank, nor on fewer ranks, nor if it ran elsewhere."""
    machine, program = replace(A100, least_gib=None, most_gib=None), gpt(global_batch=64)
    ran = step(1.0, 4, batch=64, here=True)

    def fitting(measured: MeasuredStep, batch: int) -> set[int]:
        asked = ask(replace(program, global_batch=batch), machine, 2, 4, 8, measured=(measured,))
        return {
            row.ranks for row in advise(asked).rows if (row.strategy, row.fits) == ("ddp", "yes")
        }

    assert fitting(ran, 64) == {4, 8}
    assert fitting(ran, 128) == {8}
    assert fitting(replace(ran, here=False), 64) == set()


@pytest.mark.parametrize(
    ("batches", "known"),
    [
        ((64.0, 64.0), {"global_batch": "64"}),
        ((64.0, 256.0), {"batch": "64"}),
        ((64.0, 128.0), {}),
        ((64.0, None), {}),
        ((None, None), {}),
    ],
)
def test_the_batch_that_measured_steps_have_in_common(
    batches: tuple[float | None, float | None], known: dict[str, str]
) -> None:
    program, (one, four) = other(global_batch=None), batches
    steps = (step(1.0, 1, one), step(1.0, 4, four))
    assert batch_of(program, steps) == known
    assert batch_of(other(global_batch=8), steps) == {}
    assert batch_of(other(global_batch=None, batch=8), steps) == {}


def test_without_a_batch_activations_are_open() -> None:
    program = other(1e9, activation_bytes=1e6, global_batch=None)
    row = row_of(advise(ask(program, A100, 1)), "single", 1)
    assert row.memory is not None
    assert row.memory.whole.high is None
    assert (row.fits, row.reason) == ("perhaps", "its batch is unknown")
