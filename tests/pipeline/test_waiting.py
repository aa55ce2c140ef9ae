"""How often a test looks while it waits."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.pipeline.waiting import wait_for

LOOK_S, LOOKS = 0.1, 4


def looks() -> Iterator[bool]:
    """Yield after a look, which is in vain until the last."""
    for number in range(1, LOOKS + 1):
        time.sleep(LOOK_S)
        yield number == LOOKS


def test_pauses_are_twice_as_long_as_a_look() -> None:
    found, began = looks(), time.monotonic()
    wait_for(lambda: next(found))
    assert time.monotonic() - began >= (LOOKS + 2 * (LOOKS - 1)) * LOOK_S


def test_what_does_not_happen_fails() -> None:
    with pytest.raises(AssertionError, match="it did not happen"):
        wait_for(lambda: False, within_s=0.1)


def test_a_wait_in_vain_ends_with_the_reason() -> None:
    began = time.monotonic()
    with pytest.raises(AssertionError, match="it failed: no torch"):
        wait_for(lambda: False, within_s=60, in_vain=lambda: "it failed: no torch")
    assert time.monotonic() - began < 30


def test_what_is_in_vain_for_a_moment_only_is_waited_for() -> None:
    said = iter(["queued again soon"])
    began = time.monotonic()
    wait_for(lambda: time.monotonic() - began > 6, every_s=0.3, in_vain=lambda: next(said, ""))
