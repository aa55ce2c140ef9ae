"""Energy of a training: metered where it was, else what the GPUs can draw at most."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from hpc_train.advice.verdicts import advise
from hpc_train.model.value_range import Range, exactly
from tests.advice.questions import A100, ask, gpt, row_of, step

LIMITED = replace(A100, gpu_tdp_w=400.0)
# 1,000 steps of 3.6 s are an hour.
HOUR = gpt(steps=1000)


def test_the_power_limit_is_an_upper_bound() -> None:
    advice = advise(ask(HOUR, LIMITED, 1, 4, measured=(step(3.6), step(1.8, 4))))
    single, four = row_of(advice, "single", 1), row_of(advice, "ddp", 4)
    assert (single.energy_kwh, single.meter) == (Range(high=0.4), "limit")
    assert four.energy_kwh is not None
    assert four.energy_kwh.high == pytest.approx(0.8)


def test_metered_power_replaces_the_limit() -> None:
    nodes = step(3.6, power_w=Range(low=500, high=600), meter="nodes")
    gpus = step(1.8, 4, power_w=exactly(1000), meter="GPUs")
    advice = advise(ask(HOUR, LIMITED, 1, 4, measured=(nodes, gpus)))
    single, four = row_of(advice, "single", 1), row_of(advice, "ddp", 4)
    assert single.energy_kwh == Range(low=0.5, high=0.6)
    assert (single.meter, four.meter) == ("nodes", "GPUs")
    assert four.energy_kwh == exactly(0.5)
    # A strategy that was not measured at this size has the limit only.
    assert row_of(advice, "fsdp", 4).meter == "limit"


def test_without_a_limit_or_an_upper_bound_there_is_none() -> None:
    unknown = advise(ask(HOUR, A100, 1, measured=(step(3.6),)))
    assert row_of(unknown, "single", 1).energy_kwh is None
    open_ended = advise(ask(HOUR, LIMITED, 1))
    assert row_of(open_ended, "single", 1).energy_kwh is None
    no_steps = advise(ask(gpt(), LIMITED, 1, measured=(step(3.6),)))
    assert row_of(no_steps, "single", 1).energy_kwh is None
