"""Which lines say that the work is done, and which only look like it."""

import io
from pathlib import Path

import pytest
import yaml

from hpc_train.diagnosis.scan_logs import Ending, EpochReader, MarkReader, StepReader
from hpc_train.logs.line import Block, blocks, dispatch

ENDINGS = yaml.safe_load((Path(__file__).parent / "endings.yaml").read_bytes())


def kinds(text: str, size: int = 1 << 20) -> list[str]:
    """Return how a log ends, read as by `observe`, in blocks of whole lines."""
    endings, steps, epochs = MarkReader(), StepReader(), EpochReader()
    log = text.encode()
    said = [
        (line.number, ending.kind)
        for line, _ in dispatch(io.BytesIO(log), [endings])
        for ending in endings.read(line)
        if isinstance(ending, Ending)
    ]
    number = 1
    for data, end in blocks(io.BytesIO(log), size):
        for counter in (steps, epochs):
            counter.read_block(Block(data, end), number)
        number += data.count(b"\n", 0, end)
    counted = ((one.line, one.kind) for one in (*steps.endings, *epochs.endings))
    return [kind for _, kind in sorted([*said, *counted])]


@pytest.mark.parametrize(
    ("kind", "text"), [(kind, text) for kind, texts in ENDINGS.items() for text in texts]
)
def test_line_says_how_the_job_ended_or_nothing(kind: str, text: str) -> None:
    assert kinds(text) == ([] if kind == "nothing" else [kind])


def test_count_of_an_epoch_is_taken_back() -> None:
    lines = "iteration: 10 / 10\niteration: 1 / 10\niteration: 2 / 10\nreiteration: 4 / 4"
    for size in (20, 1 << 20):
        assert kinds(lines, size) == ["work", "restart"]


SUMMARIES = "Epoch 1/3, loss: 0.9\nEpoch 2/3, loss: 0.8\nEpoch 3/3, loss: 0.7\n"


@pytest.mark.parametrize(
    "text",
    [
        SUMMARIES,
        SUMMARIES.replace(", ", "] [").replace("Epoch ", "[epoch:"),
        SUMMARIES.replace("loss", "Test Acc"),
        SUMMARIES.replace("1/3", "001/003").replace("2/3", "002/003").replace("3/3", "003/003"),
    ],
)
def test_the_last_epoch_with_its_results_ends_the_training(text: str) -> None:
    assert kinds(text) == ["part"]
    assert kinds(text + "\nEpoch 1/9, loss: 0.5\n") == ["part", "restart"]


@pytest.mark.parametrize(
    "text",
    [
        "Epoch 3/3, loss: 0.7",
        "Epoch 1/1, loss: 0.7",
        SUMMARIES.replace("loss", "rate"),
        SUMMARIES.replace("loss", "batch 7, loss"),
        SUMMARIES.replace("loss", "7/100 loss"),
    ],
)
def test_an_epoch_that_may_not_be_over(text: str) -> None:
    assert kinds(text) == []


def test_the_line_of_a_last_step_is_told() -> None:
    steps = StepReader()
    text = b"iteration 1/ 2\n\n0: iteration 2/ 2 | a\r iteration 1/ 2\n[step=2/2] [step=2/2]"
    steps.read_block(Block(bytearray(text), len(text)), 7)
    assert [(one.kind, one.line, one.text) for one in steps.endings] == [
        ("work", 9, "iteration 2/ 2 | a"),
        ("restart", 9, " iteration 1/ 2"),
        ("work", 10, "[step=2/2] [step=2/2]"),
    ]


def test_an_epoch_that_is_told_again_ends_nothing() -> None:
    ranks = "".join(line + "\n" + line + "\n" for line in SUMMARIES.splitlines())
    assert kinds(ranks) == []
