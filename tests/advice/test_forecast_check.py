"""Which forecasts are stored, and which one a measured step checks."""

from __future__ import annotations

from msgspec.structs import replace

from hpc_train.advice.forecast_check import added, checked_forecasts, stored_forecasts
from hpc_train.advice.verdicts import advise
from hpc_train.model.stored_forecast import StoredForecast
from hpc_train.model.value_range import Range
from tests.advice.questions import A100, ask, gpt, step

STORED = StoredForecast(
    made=100.0, site="here", partition="gpu", strategy="ddp", ranks=8, batch=64.0,
    step=Range(low=0.4, high=0.6), memory=Range(low=10.0, high=20.0),
)  # fmt: skip
RUN = step(0.5, 8, started=200.0, peak_memory_gib=15.0)


def test_rows_with_an_upper_bound_are_stored() -> None:
    advice = advise(ask(gpt(), A100, 1, 4, 8, measured=(step(4.0), step(1.0, 4))))
    stored = {(one.strategy, one.ranks): one for one in stored_forecasts(advice, A100, 5.0)}
    assert {("ddp", 8), ("fsdp", 8), ("fsdp", 4)} <= set(stored)
    # These two were measured.
    assert not {("single", 1), ("ddp", 4)} & set(stored)
    assert stored["ddp", 8].made == 5.0
    assert not stored_forecasts(advise(ask(gpt(), A100, 8)), A100, 5.0)


def test_a_step_checks_the_last_forecast_before_its_first_run() -> None:
    later = replace(STORED, made=150.0, step=Range(low=0.6, high=0.7))
    (found,) = checked_forecasts((STORED, later, replace(STORED, made=250.0)), (RUN,))
    assert found.forecast is later
    assert not found.held
    assert found.memory_held
    (inside,) = checked_forecasts((STORED,), (RUN,))
    assert inside.held


def test_another_size_batch_or_time_checks_nothing() -> None:
    for changed in (
        replace(RUN, ranks=4),
        replace(RUN, strategy="fsdp"),
        replace(RUN, batch=32.0),
        replace(RUN, started=50.0),
        replace(RUN, started=99.0),
        replace(RUN, started=None),
    ):
        assert not checked_forecasts((STORED,), (changed,))


def test_bounds_that_are_not_known_hold_nothing() -> None:
    (found,) = checked_forecasts((replace(STORED, memory=None),), (RUN,))
    assert found.memory_held is None
    (found,) = checked_forecasts((STORED,), (replace(RUN, peak_memory_gib=None),))
    assert found.memory_held is None
    (found,) = checked_forecasts((STORED,), (replace(RUN, peak_memory_gib=21.0),))
    assert found.memory_held is False


def test_a_repeated_forecast_is_stored_once() -> None:
    again = replace(STORED, made=120.0)
    other = replace(STORED, made=130.0, step=Range(low=0.3, high=0.6))
    assert added((STORED,), (again,)) == (STORED,)
    assert added((STORED,), (other,)) == (STORED, other)
    assert added((STORED, other), (again,)) == (STORED, other, again)


def test_the_memory_of_a_change_is_not_that_of_the_program() -> None:
    """Whoever runs it without smaller micro-batches needs more than the bounds of the row."""
    advice = advise(ask(gpt(global_batch=512), A100, 1, 2, 16, measured=(step(30.0, batch=512),)))
    rows = {(row.strategy, row.ranks): row for row in advice.rows}
    stored = {(one.strategy, one.ranks): one for one in stored_forecasts(advice, A100, 5.0)}
    assert rows["ddp", 2].change
    assert stored["ddp", 2].memory is None
    assert not rows["ddp", 16].change
    assert stored["ddp", 16].memory is not None
