"""Of how many steps a logged value is the mean: by the steps of the lines, and what is stated."""

from __future__ import annotations

import pytest

from tests.records.parse_text import parse

LINE = b" iteration %d/ 100 | elapsed time per iteration (ms): %d.0 | global batch size:  8 |\n"


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ((1010, 1020, 1030), [1, 10, 10]),  # nobody said how long the first interval is
        ((10, 20, 20, 30), [1, 10, 10, 10]),  # printed twice
        ((90, 100, 60, 70), [1, 10, 1, 10]),  # restarted
    ],
)
def test_interval_without_arguments(steps: tuple[int, ...], expected: list[int]) -> None:
    text = b"".join(LINE % (step, 500) for step in steps)
    found = [hit.steps for _, hit, _ in parse(text) if hit.metric == "step_time"]
    assert found == expected


def test_intervals_of_ranks_are_their_own() -> None:
    text = b"".join(b"%d: " % rank + LINE % (step, 500) for step in (5, 10) for rank in (0, 1))
    found = [(who, hit.steps) for _, hit, who in parse(text) if hit.metric == "step_time"]
    assert found == [(0, 1), (1, 1), (0, 5), (1, 5)]


def test_lost_lines_do_not_stretch_the_interval() -> None:
    dump = b"  log_interval .................................... 10\n"
    text = dump + LINE % (10, 500) + LINE % (40, 500)
    assert [hit.steps for _, hit, _ in parse(text) if hit.metric == "step_time"] == [10, 10]
