"""nanoGPT and what grew out of it."""

from __future__ import annotations

import pytest

from hpc_train.records.line import Line
from hpc_train.records.parsing.log_parser import Hit
from hpc_train.records.run_parsers import maker
from tests.records.parse_text import brief, parse, values


def hits_of(name: str, text: bytes) -> list[Hit]:
    """Read every line, without a search for the literals: compiling them takes the most time."""
    parser = maker(name)()
    return [
        hit for raw in text.split(b"\n") for hit in parser.read(Line(raw)) if isinstance(hit, Hit)
    ]


def test_nanogpt_keeps_its_own_lines() -> None:
    assert not parse(b"iter 100: loss 3.2847, time 135.21ms, mfu 38.04%", "litgpt")


def test_nanogpt_behind_a_time() -> None:
    text = b"2025-01-01 10:00:00 iter 20: loss 4.5, time 500.50ms, mfu 15.50%"
    assert brief(text) == [
        ("loss", 4.5, "per_rank", 20, None),
        ("step_time", pytest.approx(0.5005), "per_rank", 20, None),
        ("mfu", 0.155, "per_rank", 20, None),
    ]


def test_modded_nanogpt() -> None:
    text = (
        b"step:0/1480 val_loss:7.5000 train_time:0ms step_avg:nanms\n"
        b"step:9/1480 train_time:4500ms step_avg:nanms\n"
        # The clock starts anew.
        b"step:11/1480 train_time:250ms step_avg:250.00ms\n"
        b"step:21/1480 train_loss:5.5000 train_time:2750ms step_avg:250.00ms\n"
        b"step:21/1480 val_loss:5.2500 val_bpb:1.2540 train_time:2750ms step_avg:250.00ms\n"
    )
    found = [
        (hit.metric, hit.value, hit.step, hit.steps, hit.variant)
        for _, hit, _ in parse(text)
        if hit.variant != "running_average"
    ]
    assert found == [
        ("loss", 7.5, 0, 1, "validation"),
        ("step_time", 0.5, 9, 9, ""),
        ("loss", 5.5, 21, 1, ""),
        ("step_time", 0.25, 21, 10, ""),
        ("loss", 5.25, 21, 1, "validation"),
    ]
    assert values(text, "step_time").count(0.25) == 4


@pytest.mark.parametrize(
    ("line", "sizes"),
    [
        (
            b"peak memory allocated: 5120 MiB reserved: 6144 MiB",
            {"max_allocated": 5, "max_reserved": 6},
        ),
        (b"peak memory allocated: 5120 MiB", {"max_allocated": 5}),
        (b"peak memory allocated: 5120 Mi", {}),
    ],
)
def test_memory_of_modded_nanogpt(line: bytes, sizes: dict[str, float]) -> None:
    assert {hit.variant: hit.value for _, hit, _ in parse(line, "modded_nanogpt")} == sizes
