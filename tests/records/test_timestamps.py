"""The year of stamps without one is that of the lines before, near the beginning of the log."""

from __future__ import annotations

from hpc_train.records.signature_matcher import Clock

SHORT = "[E0131 12:00:00.123 file.cpp:1] text"


def test_the_year_is_looked_for_near_the_beginning() -> None:
    clock = Clock()
    for _ in range(199):
        clock.look("text")
    assert clock.wants_year
    assert clock.time(SHORT) is None
    clock.look("2025-01-31 11:59:59 text")
    assert not clock.wants_year
    assert clock.time(SHORT) == "2025-01-31T12:00:00.123"


def test_the_year_of_a_late_line_is_not_looked_for() -> None:
    clock = Clock()
    for _ in range(200):
        clock.look("text")
    assert not clock.wants_year
    clock.look("2025-01-31 11:59:59 text")
    assert clock.time(SHORT) is None


def test_a_stamp_far_from_the_beginning_is_not_the_time_of_the_line() -> None:
    stamp = "2025-01-31 11:59:59"
    assert Clock().time(f"{'x' * 381}{stamp}") == "2025-01-31T11:59:59"
    assert Clock().time(f"{'x' * 382}{stamp}") is None
