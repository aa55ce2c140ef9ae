"""Items that come slowly are handed on in time, those that come fast many at once."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Iterator
from itertools import count, islice
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpc_train.records.live_pipe_batches import is_live, lots

FOREVER = 3600.0


def of(source: queue.Queue[int | None]) -> Iterator[int]:
    """Yield what is put into a queue, until that is None."""
    while (item := source.get()) is not None:
        yield item


@settings(deadline=None)
@given(st.lists(st.integers(), max_size=40), st.integers(min_value=1, max_value=12))
def test_lots_are_full_while_items_come_fast(items: list[int], most: int) -> None:
    found = list(lots(iter(items), most, FOREVER))
    assert found == [items[start : start + most] for start in range(0, len(items), most)]


def test_what_came_is_handed_on_while_nothing_more_comes() -> None:
    source: queue.Queue[int | None] = queue.Queue()
    found = lots(of(source), 1000, 0.01)
    for number in range(3):
        source.put(number)
        assert next(found) == [number]
    source.put(None)
    assert list(found) == []


def test_a_failure_comes_behind_the_items_before_it() -> None:
    def damaged() -> Iterator[int]:
        yield from range(5)
        raise OSError("damaged")

    found = lots(damaged(), 2, FOREVER)
    assert list(islice(found, 3)) == [[0, 1], [2, 3], [4]]
    with pytest.raises(OSError, match="damaged"):
        next(found)


def test_no_thread_is_left_when_the_reader_stops() -> None:
    before = set(threading.enumerate())
    found = lots(count(), 10, FOREVER)
    assert next(found) == list(range(10))
    ours = set(threading.enumerate()) - before
    found.close()  # type: ignore[attr-defined]
    for thread in ours:
        thread.join(240)
        assert not thread.is_alive()


def test_a_pipe_is_live_and_a_file_is_not(tmp_path: Path) -> None:
    (tmp_path / "a.log").touch()
    assert not is_live(tmp_path / "a.log")
    assert not is_live(tmp_path / "gone.log")
    assert not is_live(tmp_path)
    reader, end = os.pipe()
    assert is_live(Path(f"/dev/fd/{reader}"))
    os.close(reader)
    os.close(end)
