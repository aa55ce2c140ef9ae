"""torchtune's loggers."""

from __future__ import annotations

import pytest

from tests.records.parse_text import brief, parse

LINE = (
    b"Step 5 | loss:0.35119619965553284 lr:1e-06 tokens_per_second_per_gpu:9077.1552734375 "
    b"peak_memory_active:85.5 peak_memory_alloc:85.25 peak_memory_reserved:104.0546875 "
)


@pytest.mark.parametrize("prefix", [b"", b"[rank0]:", b"0: "])
def test_line(prefix: bytes) -> None:
    rank = 0 if prefix else None
    assert brief(prefix + LINE) == [
        ("loss", 0.35119619965553284, "global", 5, rank),
        ("learning_rate", 1e-06, "global", 5, rank),
        ("tokens_per_second", 9077.1552734375, "per_gpu", 5, rank),
        ("memory", 85.5, "per_rank", 5, rank),
        ("memory", 85.25, "per_rank", 5, rank),
        ("memory", 104.0546875, "per_rank", 5, rank),
    ]
    variants = [hit.variant for _, hit, _ in parse(LINE) if hit.metric == "memory"]
    assert variants == ["", "max_allocated", "max_reserved"]


def test_each_field_ends_with_a_blank() -> None:
    whole = brief(LINE)
    for length in range(len(LINE)):
        for row, expected in zip(brief(LINE[:length]), whole, strict=False):
            assert row[1] == pytest.approx(expected[1], rel=1e-6)
    assert len(brief(LINE.rstrip())) == len(whole)
    assert len(brief(LINE.rstrip().replace(b"104.0546875", b"104.05"))) == len(whole) - 1


def test_validation_and_bar_between() -> None:
    text = (
        b"1|5|Loss: 0.35:  12%|#2  | 5/40 [00:10<01:10]\r" + LINE + b"\nStep 5 | val_loss:0.75 \n"
    )
    found = [(hit.metric, hit.value, hit.variant) for _, hit, _ in parse(text)]
    assert len(found) == 7
    assert found[-1] == ("loss", 0.75, "validation")


@pytest.mark.parametrize(
    "line",
    [b"  tokens_per_second_per_gpu: 9077.2", b"tokens_per_second_per_gpu:9077.2 lr:1e-06 "],
)
def test_lines_of_others(line: bytes) -> None:
    assert not parse(line)
