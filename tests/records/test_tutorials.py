"""Lines of well-known training loops: whose values they are, and where in the run."""

from __future__ import annotations

import pytest

from tests.records.parse_text import Brief, brief, parse


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "2024-01-02 03:04:05,678 - root - INFO - Time taken for epoch 2 is 9.500000 sec, "
            "avg 8.250000 samples/sec\n... INFO -   Avg train loss=0.570000",
            [
                ("epoch_time", 9.5, "global", 2, None),
                ("samples_per_second", 8.25, "global", None, None),
                ("loss", 0.57, "global", 2, None),
            ],
        ),
        (
            "Time taken for 50 steps is 9.500000 sec, avg 8.250000 samples/sec",
            [("samples_per_second", 8.25, "global", None, None)],
        ),
        ("Train Epoch: 1 [64/60000 (0%)]\tloss=2.25", [("loss", 2.25, "per_rank", None, None)]),
        ("x - root - INFO - Avg train loss=0.25", [("loss", 0.25, "global", None, None)]),
        ("epoch 3/5: Avg train loss=0.25", []),
        ("Time taken for epoch 1 is 9.5 sec\n", [("epoch_time", 9.5, "global", 1, None)]),
        (
            " 3: 2018-01-02 03:04:05,678 INFO Train samples 64 time 2.5s rate 25.6 samples/s",
            [
                ("samples", 64.0, "per_rank", None, 3),
                ("epoch_time", 2.5, "per_rank", None, 3),
                ("samples_per_second", 25.6, "per_rank", None, 3),
            ],
        ),
        (
            "Train samples 64 time 2.5 s rate 25.6 samples/s",
            [
                ("samples", 64.0, "per_rank", None, None),
                ("epoch_time", 2.5, "per_rank", None, None),
                ("samples_per_second", 25.6, "per_rank", None, None),
            ],
        ),
        ("Train Epoch: 1 [640/60000 (1%)]\tLoss: 0.125", [("loss", 0.125, "per_rank", None, None)]),
        ("Train Epoch: 1 [640/60000 (1%)] Loss: 0.125", [("loss", 0.125, "per_rank", None, None)]),
        ("Train Epoch: 3 \tLoss: 0.125000", [("loss", 0.125, "global", 3, None)]),
        ("Train Epoch: \t3, Loss: \t0.1250", [("loss", 0.125, "global", 3, None)]),
        (
            "Train Epoch: 2 [0/10 (0%)]\tLoss: 1.0\n\n"
            "Test set: Average loss: 0.1, Accuracy: 97/100 (97%)",
            [("loss", 1.0, "per_rank", None, None), ("accuracy", 0.97, "global", 2, None)],
        ),
        (
            "Test set: Average loss: 0.1, Accuracy: 98.50%",
            [("accuracy", 0.985, "global", None, None)],
        ),
        ("  Validation loss: 2.9 acc: 0.125", [("accuracy", 0.125, "per_rank", None, None)]),
        ("CUDA event elapsed time: 40.5sec", [("time_to_train", 40.5, "global", None, None)]),
        (
            "[GPU3] Epoch 7 | Batchsize: 32 | Steps: 8",
            [("batch_size", 32.0, "per_rank", None, 3), ("steps", 8.0, "per_rank", 7, 3)],
        ),
        (
            "[RANK 3] Epoch 7 | Batchsize: 32 | Steps: 8",
            [("batch_size", 32.0, "per_rank", None, 3), ("steps", 8.0, "per_rank", 7, 3)],
        ),
        ("[GPU1] Epoch 1 | Iter 0 | Train Loss 2.5", [("loss", 2.5, "per_rank", 1, 1)]),
        (
            "0: 2024-01-02 03:04:05 I [train.py:103] Batch 34 Loss: 7.5, "
            "Speed: 5.75 samples/sec, lr: 0.000100",
            [
                ("loss", 7.5, "per_rank", 35, 0),
                ("samples_per_second", 5.75, "global", 35, 0),
                ("learning_rate", 0.0001, "global", 35, 0),
            ],
        ),
    ],
)
def test_shapes(text: str, expected: list[Brief]) -> None:
    assert brief(text.encode()) == expected


def test_a_running_loss_is_the_mean_of_its_steps() -> None:
    text = b"[1,  2000] loss: 2.2\n[1,  4000] loss: 1.9\n[2,  2000] loss: 1.5\n"
    found = [(hit.value, hit.step, hit.steps) for _, hit, _ in parse(text)]
    assert found == [(2.2, 2000, 2000), (1.9, 4000, 2000), (1.5, 6000, 2000)]


def test_ranks_that_share_a_line() -> None:
    line = "[host-1 tcp:10.0.0.1:26600] [9] " + "".join(
        f"[GPU{rank}] Epoch 3 | Batchsize: 32 | Steps: 8" for rank in (2, 0, 1)
    )
    assert [(metric, value, who) for metric, value, _, _, who in brief(line.encode())] == [
        (metric, value, rank)
        for rank in (2, 0, 1)
        for metric, value in (("batch_size", 32), ("steps", 8))
    ]


def test_ranks_count_their_own_steps() -> None:
    text = b"".join(
        b"%d: Batch %d Loss: 1.0, Speed: 2.00 samples/sec, lr: 0.1\n" % (rank, batch)
        for batch in (0, 1, 0)
        for rank in (0, 1)
    )
    steps = [(who, hit.step) for _, hit, who in parse(text) if hit.metric == "loss"]
    assert steps == [(0, 1), (1, 1), (0, 2), (1, 2), (0, 3), (1, 3)]


@pytest.mark.parametrize(
    "text",
    [
        "Train Epoch: 1 [640/60000 (1%)]\tLoss: nan",
        "Train Epoch: 1 [640/60",
        "Test set: Average loss: 0.1, Accuracy: 97/0 (97%)",
        "Train Epoch: 1 [640/6000 (1%)] Data (t): 0.1 Batch (t): 0.2, 512/s",
        "loss: 0.5 Loss: 0.5 Batch Loss: 7",
    ],
)
def test_what_states_nothing(text: str) -> None:
    assert brief(text.encode(), "tutorials") == []
