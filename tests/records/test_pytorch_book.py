"""The book's lines, as its scripts print them."""

from __future__ import annotations

import pytest

from tests.records.parse_text import Brief, brief


def hits(text: bytes, rank: int | None = None) -> list[Brief]:
    return brief(text, "book", rank=rank)


def test_log_of_two_workers() -> None:
    text = (
        b"Worker 1 - Start training\n\nSteps: 98\n"
        b"Worker 1 - Epoch [1/25], Loss: 1.2345, time: 12 seconds\n"
        b"Worker 0 - Epoch [1/25], Loss: 1.5000, time: 13 seconds\n"
        b"Training time: 321 seconds\n"
        b"Accuracy of the network on the 10000 test images: 81.5 %\n"
    )
    assert hits(text) == [
        ("steps", 98, "per_rank", None, None),
        ("epoch_time", 12, "per_rank", 1, 1),
        ("loss", 1.2345, "per_rank", 1, 1),
        ("epoch_time", 13, "per_rank", 1, 0),
        ("loss", 1.5, "per_rank", 1, 0),
        ("time_to_train", 321, "per_rank", None, None),
        ("accuracy", pytest.approx(0.815), "global", None, None),
    ]


def test_baseline_has_no_worker() -> None:
    assert hits(b"Epoch [5/5], Loss: 0.1000, time: 0 seconds\r\n") == [
        ("epoch_time", 0, "per_rank", 5, None),
        ("loss", 0.1, "per_rank", 5, None),
    ]


def test_worker_wins_over_the_label() -> None:
    text = b"[1,9]<stdout>:Worker 3 - Epoch [1/2], Loss: 1.0, time: 4 seconds\n"
    assert {rank for *_, rank in hits(text)} == {3}


def test_rank_from_label_or_file() -> None:
    assert hits(b"2: Training time: 9 seconds\n", rank=7)[0][4] == 2
    assert hits(b"Training time: 9 seconds\n", rank=7)[0][4] == 7


def test_loss_that_is_not_a_number_leaves_the_time() -> None:
    text = b"Worker 0 - Epoch [1/2], Loss: nan, time: 4 seconds\n"
    assert hits(text) == [("epoch_time", 4, "per_rank", 1, 0)]


def test_ranks_that_share_a_line() -> None:
    assert [value for _, value, *_ in hits(b"Steps: 98Steps: 97\n\n")] == [98, 97]
    text = b"Training time: 5 secondsTraining time: 6 seconds\n"
    assert [value for _, value, *_ in hits(text)] == [5, 6]


def test_cut_epoch_before_another_line() -> None:
    text = b"Worker 0 - Epoch [1/2], Loss: 1.0, Training time: 5 seconds\n"
    assert hits(text) == [("time_to_train", 5, "per_rank", None, None)]
    text = b"Epoch [1/2], Loss: Worker 3 - Epoch [2/2], Loss: 1.5, time: 4 seconds\n"
    assert hits(text) == [("epoch_time", 4, "per_rank", 2, 3), ("loss", 1.5, "per_rank", 2, 3)]


@pytest.mark.parametrize(
    "text",
    [
        b"Total Steps: 100\n",
        b"Epoch [1/2], Loss: 1.0, ti",
        b"Epoch [1/2] done\n",
        b"Training time: unknown\n",
        b"Loading time: 7 seconds\n",
        b"Epoch [1/2], Loss: 1.0, load time: 7 seconds\n",
        b"Accuracy of the network on the 10000 test images: -.-.- %\n",
        b"",
    ],
)
def test_other_lines_give_nothing(text: bytes) -> None:
    assert hits(text) == []


def test_seconds_with_decimals() -> None:
    text = b"Epoch [2/3], Loss: 0.5, time: 0.37 seconds\nTraining time: 1.25 seconds\n"
    assert hits(text) == [
        ("epoch_time", 0.37, "per_rank", 2, None),
        ("loss", 0.5, "per_rank", 2, None),
        ("time_to_train", 1.25, "per_rank", None, None),
    ]
