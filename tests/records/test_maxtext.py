"""MaxText, MaxDiffusion and their prefixes."""

from __future__ import annotations

import pytest

from tests.records.parse_text import brief, parse, values

LINE = (
    b"completed step: 5, seconds: 0.434, TFLOP/s/device: 237.045, Tokens/s/device: 9447.649, "
    b"total_weights: 30851, loss: 12.286"
)


@pytest.mark.parametrize(
    "prefix",
    [b"", b"I0317 10:00:15.412527 125344476638336 metric_logger.py:181] ", b"3: ", b"  "],
)
def test_line(prefix: bytes) -> None:
    rank = 3 if prefix == b"3: " else None
    assert brief(prefix + LINE) == [
        ("step_time", 0.434, "global", 5, rank),
        ("tflops", 237.045, "per_gpu", 5, rank),
        ("tokens_per_second", 9447.649, "per_gpu", 5, rank),
        ("loss", 12.286, "global", 5, rank),
    ]


def test_start_is_no_step_like_the_others() -> None:
    """The second step is dispatched while the first one runs; a run that begins again has both."""
    lines = [LINE.replace(b"step: 5", b"step: %d" % step) for step in (0, 1, 2, 3, 2, 3, 4)]
    hits = [hit for _, hit, _ in parse(b"\n".join(lines))]
    variants = [hit.variant for hit in hits if hit.metric == "step_time"]
    assert variants == ["startup", "startup", "", "", "startup", "startup", ""]
    assert {hit.variant for hit in hits if hit.metric == "loss"} == {""}


def test_first_versions() -> None:
    line = b"completed step: 15107, seconds: 2.167, TFLOP/s: 36.722, loss: 2.191"
    assert ("tflops", 36.722, "per_gpu", 15107, None) in brief(line)


def test_maxdiffusion_counts_no_tokens() -> None:
    line = b"completed step: 2, seconds: 36.014, TFLOP/s/device: 135.871, loss: 0.210"
    assert [row[:2] for row in brief(line)] == [
        ("step_time", 36.014),
        ("tflops", 135.871),
        ("loss", 0.21),
    ]


def test_times_in_two_units_are_one() -> None:
    line = (
        b"completed step: 2, seconds: 1.182, train_step_time_ms: 1182.25, TFLOP/s/device: 167.154, "
        b"Tokens/s/device: 3464.384, Tokens/s/chip: 6928.768"
    )
    assert [row[:2] for row in brief(line)] == [
        ("step_time", 1.182),
        ("tflops", 167.154),
        ("tokens_per_second", 3464.384),
    ]


def test_cut_numbers_are_left_out() -> None:
    whole = brief(LINE)
    for length in range(len(LINE)):
        assert brief(LINE[:length]) == whole[: len(brief(LINE[:length]))]


@pytest.mark.parametrize("line", [b"[INFO] Completed step: inventory", b"completed step: 7"])
def test_steps_of_others(line: bytes) -> None:
    assert not values(line, "step_time")
