"""Entries over time: which values form a series, and what is left out of it."""

from __future__ import annotations

import pytest

from hpc_train.model.track import Track, TrackEntry
from hpc_train.tables.track_history import tracks
from tests.tables.histories import entry, history, point, sized


def speeds(entries: list[TrackEntry]) -> list[Track]:
    return [track for track in tracks(entries) if track.speed and not track.all_sizes]


def test_a_step_is_found_in_the_speed() -> None:
    (track,) = speeds(history([100.0] * 12 + [80.0] * 6))
    assert [change.at for change in track.changes] == [12]
    assert track.changes[0].low < 0.8 < track.changes[0].high
    assert [len(level) for level in track.levels()] == [12, 6]


@pytest.mark.parametrize(
    "other", [{"parser": "megatron"}, {"model": "vit"}, {"global_batch": "512"}, {"regime": "weak"}]
)
def test_other_work_is_another_series(other: dict[str, str]) -> None:
    """Both batches have a speed of their own: one series would have a step that no change made."""
    days = [entry(day, point(100.0, work={"regime": "strong"})) for day in range(10)]
    days += [entry(10 + day, point(50.0, work={"regime": "strong"} | other)) for day in range(10)]
    first, second = speeds(days)
    assert (len(first.known), len(second.known)) == (10, 10)
    assert first.changes == second.changes == ()
    (name,) = other
    assert second.work == f"{name}={other[name]}"
    assert first.work.startswith(f"{name}=")


def test_a_fact_that_an_entry_did_not_record_does_not_separate_it() -> None:
    days = [entry(0, point(100.0)), entry(1, point(100.0, work={"dataset": "imagenet"}))]
    (track,) = speeds(days)
    assert len(track.known) == 2
    assert track.work == ""


def test_batches_within_a_percent_are_equal_work() -> None:
    days = [entry(day, point(100.0, work={"global_batch": str(256 + day)})) for day in range(3)]
    assert len(speeds(days)) == 1


def test_another_basis_is_another_series_and_a_longer_time_is_worse() -> None:
    days = [entry(day, point(20.0, basis="epoch time")) for day in range(8)]
    days += [entry(8 + day, point(25.0, basis="epoch time")) for day in range(8)]
    days += [entry(20, point(100.0))]
    time, rate = sorted(speeds(days), key=lambda track: track.basis)
    assert (time.metric, rate.metric) == ("epoch_time_s", "throughput")
    assert time.changes[0].ratio == pytest.approx(0.8)


def test_sizes_and_studies_are_separate() -> None:
    days = [entry(0, point(100.0), point(190.0, nodes=2)), entry(1, point(100.0), study="other")]
    found = speeds(days)
    assert [(t.study, t.sizes["nodes"]) for t in found] == [("gpt", 1), ("gpt", 2), ("other", 1)]


def test_a_failed_point_has_no_value_but_is_there() -> None:
    (track,) = speeds([entry(0, point(100.0)), entry(1, point(0.0))])
    assert [spot.value is None for spot in track.spots] == [False, True]
    assert track.spots[1].not_ok == "2 FAILED"


def test_more_series_are_tested_at_a_smaller_level() -> None:
    """A step that one series shows is not significant if it is the largest of many."""
    alone = history([100.0] * 12 + [94.3] * 3, noise=0.012, seed=5)
    assert speeds(alone)[0].changes
    others = [history([100.0] * 15, noise=0.012, seed=seed) for seed in range(100, 500)]
    many = [
        entry(
            day,
            one.points[0],
            *(point(o[day].points[0].values["throughput"].value, nodes=2 + n)
              for n, o in enumerate(others)),
        )
        for day, one in enumerate(alone)
    ]  # fmt: skip
    assert speeds(many)[0].changes == ()


def test_all_sizes_together_show_a_step_sooner() -> None:
    """5 % with a noise of 2 %, one entry after the step: no size alone is significant."""
    days = sized([100.0] * 30 + [95.0], 6)
    together, *each = [track for track in tracks(days) if track.speed]
    assert together.all_sizes == len(each) == 6
    assert [change.at for change in together.changes] == [30]
    assert [track.changes for track in each].count(()) >= 5


def test_all_sizes_are_those_of_the_newest_entry_and_only_complete_entries_count() -> None:
    days = sized([100.0] * 6, 3)
    days[2] = entry(2, point(100.0), point(0.0, nodes=2), point(290.0, nodes=3))
    days += [entry(6, point(100.0), point(200.0, nodes=2))]
    together = next(track for track in tracks(days) if track.all_sizes)
    assert together.all_sizes == 2
    assert [spot.entry for spot in together.spots] == [0, 1, 3, 4, 5, 6]
    value = together.known[-1][1].value
    assert value == pytest.approx((100.0 * 200.0) ** 0.5)


def test_a_single_size_is_not_repeated() -> None:
    assert not any(track.all_sizes for track in tracks(history([100.0] * 6)))
