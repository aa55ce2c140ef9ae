"""Bars of tqdm whose loop nobody names: seen, but never a step of a training."""

from __future__ import annotations

import pytest

from tests.records.parse_text import brief, parse


@pytest.mark.parametrize(
    ("line", "name", "value"),
    [
        ("Validation:  50%|5| 5/10 [00:05<00:05,  1.25it/s]", "Validation", 0.8),
        ("100%|#####| 125/125 [04:06<00:00,  1.99s/it]", "", 1.99),
        ("Self Play: 40%|##  | 4/10 [00:02<00:03,  2.00it/s, eps=1.5]", "Self Play", 0.5),
        ("Loading shards:  50%|#| 1/2 [00:01<00:01,  1.00s/it]", "Loading shards", 1),
        ("tok: 1000it [00:01, 800.00it/s]", "tok", 1 / 800),
    ],
)  # fmt: skip
def test_bar_of_an_unknown_loop(line: str, name: str, value: float) -> None:
    ((_, hit, _),) = parse(line.encode())
    assert (hit.metric, hit.scope, hit.variant) == ("iteration_time", "unknown", name)
    assert hit.value == pytest.approx(value)


@pytest.mark.parametrize(
    "line",
    [
        "Map:  50%|##  | 500/1000 [00:01<00:01, 900.00 examples/s]",
        "Downloading:  50%|##  | 500k/1.00M [00:01<00:01, 900kB/s]",
        "  0%|    | 0/2 [00:00<?, ?it/s]",
        "it runs at 5 it/s",
    ],
)
def test_what_counts_no_iterations(line: str) -> None:
    assert brief(line.encode()) == []


def test_bar_that_is_drawn_again_counts_once() -> None:
    line = b"eval: 40%|##  | 4/10 [00:02<00:03,  2.00it/s]\r"
    assert len(brief(line * 3)) == 1
    assert len(brief(line + line.replace(b"4/10", b"5/10"))) == 2
