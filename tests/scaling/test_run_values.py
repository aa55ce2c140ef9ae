"""Measurements of a run -> its values: which record counts, and what is left out."""

from typing import Any

import pytest

from hpc_train.logs.record import Record
from hpc_train.scaling.runs import run_frame
from tests.scaling.studies import expected, record, steps, study


def row(records: list[Record], **fields: Any) -> dict[str, Any]:
    found = run_frame(study([expected("a", **fields)]), records).iloc[0]
    return {str(name): value for name, value in found.items()}


def timer(variant: str, value: float, step: int = 1) -> Record:
    return record("a", "phase_time", value, variant=variant, scope="per_rank", step=step, rank=0)


def test_the_share_of_a_phase_is_its_largest_timer_over_the_step_time() -> None:
    timers = [timer("batch-generator max", 0.5), timer("batch-generator min", 0.9)]
    assert row([*steps("a", [[2.0]]), *timers])["data_share"] == pytest.approx(0.25)


@pytest.mark.parametrize("first", [0, 1, 5])
def test_the_number_of_steps_is_the_last_one_counted_from_one(first: int) -> None:
    batch = record("a", "global_batch_size", 8)
    stepped = [record("a", "step_time", 1.0, step=first + place) for place in range(4)]
    # Steps 0 to 3 are four steps, steps 1 to 4 as well; 5 to 8 continue a run, and are eight.
    wanted = {0: 4, 1: 4, 5: 8}[first]
    assert row([batch, *stepped])["samples_seen"] == 8 * wanted


def test_the_samples_that_a_run_states_are_used_before_steps_times_batch() -> None:
    batch = record("a", "global_batch_size", 8)
    stepped = [record("a", "step_time", 1.0, step=place) for place in (1, 2)]
    assert row([batch, *stepped, record("a", "samples", 15)])["samples_seen"] == 15


def test_the_accuracy_of_the_job_is_used_before_those_of_ranks() -> None:
    ranks = [record("a", "accuracy", x, scope="per_rank", rank=n) for n, x in ((0, 0.5), (1, 0.7))]
    assert row(ranks, gpus=2)["accuracy"] == pytest.approx(0.6)
    assert row([record("a", "accuracy", 0.9), *ranks], gpus=2)["accuracy"] == pytest.approx(0.9)


@pytest.mark.parametrize("metric", ["epoch_time", "time_to_train"])
def test_times_that_were_cut_to_seconds_are_marked(metric: str) -> None:
    for parser in ("book", "event"):
        found = row([record("a", metric, 7, parser=parser)])
        assert bool(found["whole_seconds"]) == (parser == "book")


@pytest.mark.parametrize("metric", ["epoch_time", "time_to_train"])
def test_times_with_decimals_were_not_cut(metric: str) -> None:
    seconds = [(1, 7.0), (2, 6.5)]
    printed = [record("a", metric, value, step=step, parser="book") for step, value in seconds]
    assert not row(printed)["whole_seconds"]
