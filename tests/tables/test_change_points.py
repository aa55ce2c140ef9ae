"""Changes of level: where they are, how large, how often they are false, how soon they are seen."""

from __future__ import annotations

import numpy as np
import pytest

from hpc_train.model.track import LEAST_ENTRIES, Change
from hpc_train.tables import change_points
from hpc_train.tables.change_points import changes, newest_step
from tests.tables.histories import noisy

HISTORIES, LENGTH, NOISE = 600, 50, 0.02


def is_worse(found: list[Change]) -> bool:
    return bool(found) and found[-1].ratio < 1


def test_at_most_one_history_in_twenty_of_equal_entries_is_ever_called_worse() -> None:
    """A check after each of 50 entries: the history is called worse if any check says so."""
    worse = 0
    for seed in range(HISTORIES):
        values = noisy([100.0] * LENGTH, NOISE, seed)
        worse += any(is_worse(changes(values[:n])) for n in range(1, LENGTH + 1))
    assert worse / HISTORIES <= 0.05


@pytest.mark.parametrize(("entries", "share"), [(1, 0.05), (3, 0.55), (5, 0.88)])
def test_a_step_of_5_percent_with_2_percent_noise_is_seen_soon(entries: int, share: float) -> None:
    """After 30 equal entries; a step is seen by a check after one of the first entries."""
    seen = 0
    for seed in range(HISTORIES):
        values = noisy([100.0] * 30 + [95.0] * entries, NOISE, seed)
        seen += any(is_worse(changes(values[: 30 + n])) for n in range(1, entries + 1))
    assert seen / HISTORIES >= share


def test_each_step_is_found_at_its_place() -> None:
    levels = [100.0] * 12 + [90.0] * 12 + [108.0] * 12 + [100.0] * 12
    found = changes(noisy(levels, 0.01, 4))
    assert [one.at for one in found] == [12, 24, 36]
    ratios = [0.9, 1.2, 100 / 108]
    for one, ratio in zip(found, ratios, strict=True):
        assert one.low < ratio < one.high
        assert one.ratio == pytest.approx(ratio, rel=0.02)
        assert one.p < 3e-4


def test_a_few_low_values_between_equal_ones_are_two_changes() -> None:
    """One change alone explains little: both have to be tried together."""
    found = changes(noisy([100.0] * 15 + [90.0] * 3 + [100.0] * 22, NOISE, 2))
    assert [one.at for one in found] == [15, 18]


def test_the_interval_of_a_step_holds_its_level() -> None:
    inside = 0
    for seed in range(HISTORIES):
        # A step that no noise hides, so that every history counts and none is selected.
        step = changes(noisy([100.0] * 8 + [60.0] * 5, 0.03, seed))[-1]
        inside += step.at == 8 and step.low <= 0.6 <= step.high
    assert 0.92 <= inside / HISTORIES <= 0.98


@pytest.mark.parametrize("values", [[], [3.0], [3.0, 1.0], [5.0, 5.0, 1.0, 1.0], [7.0] * 40])
def test_too_few_or_equal_values_have_no_change(values: list[float]) -> None:
    assert len(values) < LEAST_ENTRIES or len(set(values)) == 1
    assert changes(values) == []


def test_rounding_is_no_change() -> None:
    assert changes([0.123] * 10 + [0.1231] * 10) == []


def test_exact_values_have_a_step() -> None:
    (found,) = changes([4.0] * 10 + [3.0] * 10)
    assert found.at == 10
    assert found.ratio == pytest.approx(0.75)


def test_a_scale_changes_nothing() -> None:
    values = noisy([100.0] * 10 + [90.0] * 10, 0.01, 5)
    (one,), (other,) = changes(values), changes([1e-40 * value for value in values])
    assert one.at == other.at
    assert one.ratio == pytest.approx(other.ratio)


def test_of_very_many_values_the_newest_are_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_points, "MOST", 30)
    values = noisy([50.0] * 20 + [100.0] * 40 + [80.0] * 10, 0.01, 6)
    (found,) = changes(values)
    assert found.at == 60


def test_the_best_division_is_exact() -> None:
    """The dynamic programme finds the same places as trying all of them."""
    values = np.log(noisy([100, 100, 100, 80, 80, 80, 80, 99, 99], 0.03, 7))

    def squares(part: np.ndarray) -> float:
        return float(((part - part.mean()) ** 2).sum())

    every = [
        (squares(values[:a]) + squares(values[a:b]) + squares(values[b:]), [a, b])
        for a in range(1, len(values) - 1)
        for b in range(a + 1, len(values))
    ]
    assert [one.at for one in changes(list(np.exp(values)))] == min(every)[1]


def test_small_losses_in_a_row_do_not_hide_a_large_one() -> None:
    values = noisy([100.0] * 12 + [80.0] * 12 + [77.0] * 12, 0.005, 8)
    found = changes(values)
    assert [one.at for one in found] == [12, 24]
    step = newest_step(values, found)
    assert step is not None
    assert step.at == 12
    assert step.low < 0.77 < step.high


def test_a_loss_after_a_gain_is_measured_from_the_gain() -> None:
    values = noisy([100.0] * 12 + [90.0] * 12 + [110.0] * 12 + [105.0] * 12, 0.005, 8)
    step = newest_step(values, changes(values))
    assert step is not None
    assert step.at == 36
    assert step.low < 105 / 110 < step.high
    assert newest_step(values[:5], []) is None


def test_a_gain_after_a_loss_is_measured_from_the_loss() -> None:
    values = noisy([100.0] * 12 + [80.0] * 12 + [95.0] * 12, 0.005, 8)
    step = newest_step(values, changes(values))
    assert step is not None
    assert step.at == 24
    assert step.low < 95 / 80 < step.high
