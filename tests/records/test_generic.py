"""Hand-written lines: what the generic parser reads, and what is too uncertain to be read."""

from __future__ import annotations

import pytest

from hpc_train.records.line import Line
from hpc_train.records.parsers.generic import Generic
from hpc_train.records.parsing.printed_quantities import quantities
from tests.records.parse_text import Brief, brief

# Metric, value, scope, step and rank of each value.
READ = {
    "Epoch 0 took 0.54s, 3823.1 images/sec": (
        "epoch_time 0.54 per_rank 0 -; samples_per_second 3823.1 unknown 0 -"
    ),
    "Epoch 3 took 12.75 seconds": ("epoch_time 12.75 per_rank 3 -"),
    "epoch 4 finished in 2 min": ("epoch_time 120 per_rank 4 -"),
    "Epoch time: 12.3 s": ("epoch_time 12.3 per_rank - -"),
    "epoch: 5, epoch_time: 12.3s, train_loss: 0.25": (
        "epoch_time 12.3 per_rank 5 -; loss 0.25 per_rank 5 -"
    ),
    "Average epoch time = 8.5 seconds": ("epoch_time 8.5 per_rank - -"),
    "2024-01-02 03:04:05,678 - INFO - Epoch 3 finished in 12.5 seconds": (
        "epoch_time 12.5 per_rank 3 -"
    ),
    "Epoch 1/10, Loss: 0.5123, Time: 12.34s": (
        "loss 0.5123 per_rank 1 -; epoch_time 12.34 per_rank 1 -"
    ),
    "Epoch: 1 | Train Loss: 0.5123 | Val Loss: 0.6 | Val Acc: 85.2%": (
        "loss 0.5123 per_rank 1 -; accuracy 0.852 per_rank 1 -"
    ),
    "Epoch [1/10], Step [100/600], Loss: 0.2512": ("loss 0.2512 per_rank - -"),
    "Epoch: 7, Loss: 0.125": ("loss 0.125 per_rank 7 -"),
    "epoch=3 loss=0.25 time=4.2s": ("loss 0.25 per_rank 3 -; epoch_time 4.2 per_rank 3 -"),
    "Epoch 8 loss 2.125e-01": ("loss 0.2125 per_rank 8 -"),
    "[GPU1] Epoch 3 | loss 0.51 | 512.3 samples/s": (
        "loss 0.51 per_rank 3 1; samples_per_second 512.3 unknown 3 1"
    ),
    "Rank 3 | step 20 | loss: 1.25": ("loss 1.25 per_rank 20 3"),
    "rank=2 epoch=1 loss=0.5": ("loss 0.5 per_rank 1 2"),
    "step 10 | loss: 6.123456 | norm: 1.2345 | dt: 338.10ms | tok/sec: 1,550,689": (
        "loss 6.123456 per_rank 10 -; "
        "step_time 0.3381 per_rank 10 -; "
        "tokens_per_second 1550689 unknown 10 -"
    ),
    "dt: 338.10ms | tok/sec: 80124.5": (
        "step_time 0.3381 per_rank - -; tokens_per_second 80124.5 unknown - -"
    ),
    "dt: 50.5ms, tok/sec: 1550689.13": (
        "step_time 0.0505 per_rank - -; tokens_per_second 1550689.13 unknown - -"
    ),
    "iter 100: loss 3.25, dt 51.5ms": ("loss 3.25 per_rank 100 -; step_time 0.0515 per_rank 100 -"),
    "step 20, train loss 3.5, time 135ms, lr 6e-4": (
        "loss 3.5 per_rank 20 -; step_time 0.135 per_rank 20 -; learning_rate 0.0006 per_rank 20 -"
    ),
    "step 30: loss=2.5 grad_norm=0.75 lr=0.0003 mem=12.5GiB": (
        "loss 2.5 per_rank 30 -; "
        "grad_norm 0.75 per_rank 30 -; "
        "learning_rate 0.0003 per_rank 30 -; "
        "memory 12.5 per_rank 30 -"
    ),
    "Step 20 took 51 ms": ("step_time 0.051 per_rank 20 -"),
    "step 5 loss 2.5 1.25 s/it": ("loss 2.5 per_rank 5 -; iteration_time 1.25 unknown 5 -"),
    "epoch 1 | loss 2.5 | 12.5 it/s": ("loss 2.5 per_rank 1 -; iteration_time 0.08 unknown 1 -"),
    "938/938 - 3s - 3ms/step - loss: 0.3012 - val_accuracy: 0.9012 - val_loss: 0.3": (
        "step_time 0.003 per_rank - -; loss 0.3012 per_rank - -; accuracy 0.9012 per_rank - -"
    ),
    "Average step time: 0.125 s": ("step_time 0.125 per_rank - -"),
    "Iteration 100: time per iteration 120 ms, loss 2.31": (
        "step_time 0.12 per_rank 100 -; loss 2.31 per_rank 100 -"
    ),
    "batch time: 0.25 sec": ("step_time 0.25 per_rank - -"),
    "step_time_ms=42.5": ("step_time 0.0425 per_rank - -"),
    "step time (s): 0.125": ("step_time 0.125 per_rank - -"),
    "Throughput: 1234.5 images/sec": ("samples_per_second 1234.5 unknown - -"),
    "Throughput: 12.5k tokens/s": ("tokens_per_second 12500 unknown - -"),
    "Throughput: 12.5K tokens/s": ("tokens_per_second 12500 unknown - -"),
    "total throughput: 2400 samples/sec": ("samples_per_second 2400 global - -"),
    "Training speed: 1.25M tokens/sec/GPU": ("tokens_per_second 1250000 per_gpu - -"),
    "speed: 250 imgs/s per GPU": ("samples_per_second 250 per_gpu - -"),
    "images/sec: 3823.1": ("samples_per_second 3823.1 unknown - -"),
    "Step 100: 512 examples/second": ("samples_per_second 512 unknown 100 -"),
    "samples_per_second=512.5": ("samples_per_second 512.5 unknown - -"),
    "Test accuracy: 91.5%": ("accuracy 0.915 per_rank - -"),
    "val_acc: 0.915": ("accuracy 0.915 per_rank - -"),
    "Epoch 4: validation accuracy = 0.75": ("accuracy 0.75 per_rank 4 -"),
    "Accuracy: 87.5 %": ("accuracy 0.875 per_rank - -"),
    '{"epoch": 3, "train_loss": 0.25, "epoch_time_s": 4.5, "tokens_per_sec": 1200.5}': (
        "loss 0.25 per_rank 3 -; epoch_time 4.5 per_rank 3 -; tokens_per_second 1200.5 unknown 3 -"
    ),
    '{"step": 30, "loss": 0.25, "step_time_ms": 42, "lr": 0.001}': (
        "loss 0.25 per_rank 30 -; step_time 0.042 per_rank 30 -; learning_rate 0.001 per_rank 30 -"
    ),
    '{"iteration": 7, "loss": 0.5, "val_loss": 0.7, "val_accuracy": 0.5}': (
        "loss 0.5 per_rank 7 -; accuracy 0.5 per_rank - -"
    ),
}
NOTHING = [
    "lr=0.1 batch_size=32 epochs=10",
    "torch 2.3.1+cu121, time zone UTC",
    "Python 3.11.7 (main, Dec 4 2023, 18:10:11) [GCC 11.4.0]",
    "2024-01-02 03:04:05 INFO loss function: cross_entropy",
    "Downloaded 10.5MB in 3.2s",
    "Downloading: 100 images/s",
    "Loading data took 3.2s",
    "Loaded 50000 images in 1.5 s (33333 images/s)",
    '  File "train.py", line 12, in loss',
    "RuntimeError: Expected 2 accumulators, loss 0.5",
    "dropout=0.1, loss_weight=0.5, time_limit=3600",
    "100%|###| 10/10 [00:01<00:00, 9.5it/s]",
    "Map: 100%|##| 1000/1000 [00:01<00:00, 900 examples/s]",
    "time: 12.3",
    "Epoch 1 took 1 min 30 s",
    "Epoch 1 took 12.3 ± 0.4 s",
    "Epoch 1 time 3 s, time 4 s",
    "step time 3 ms, step time 4 ms",
    "Total time: 123.4 s",
    "Step 100 took 3 s",
    "Elapsed time: 123.4 s",
    "step 1000 | time 123.4 s",
    "step 100 | data time: 3 ms | fwd time: 12 ms",
    "link speed 100 Gb/s",
    "10.0.0.1:29500 timeout took 0.5 s",
    "see https://example.org/loss/s?time=3s",
    "Validation loss: 0.5",
    "Validation took 3.5 s",
    "eval: 512 samples/s",
    "Epoch 3 validation | loss: 0.5 | 512 samples/s",
    "Accuracy: 91.5",
    "Epoch 3, epoch time: n/a s",
    "Epoch 3 took 0,54 s",
    "Epoch 3 took 10-20 s",
    "Saved checkpoint, took 3.2s",
    "Expected throughput: 1000 images/sec",
    "best loss: 0.25",
    "model size 12.5 MB, loss scale 65536",
    "v1.2.3 took 2024-01-02",
    "train acc: 0.95",
    "Generated 512 tokens/s",
    "slurm job 4711 on node01 time=01:00:00",
    "Compiling took 45.2 s",
    "loss: 5%",
]


def shown(one: Brief) -> str:
    metric, value, *place = one
    return " ".join([metric, f"{value:.10g}", *("-" if at is None else str(at) for at in place)])


@pytest.mark.parametrize("text", READ)
def test_a_line_that_leaves_no_doubt(text: str) -> None:
    assert "; ".join(map(shown, brief(text.encode(), "generic"))) == READ[text]


@pytest.mark.parametrize("text", NOTHING)
def test_a_line_whose_values_are_not_certain(text: str) -> None:
    assert Generic().read(Line(text.encode())) == []


@pytest.mark.parametrize(
    "text",
    [
        "epoch 1, loss: 0.5 (loss: 0.4)", "epoch 1 loss 0.5 train loss 0.4",
        "100 images/s, 90 images/s, loss scale 1",
    ],
)  # fmt: skip
def test_two_values_of_one_metric_are_none(text: str) -> None:
    assert Generic().read(Line(text.encode())) == []


def test_a_rank_of_the_prefix_is_that_of_the_line() -> None:
    assert brief(b"[rank3]: [GPU1] Epoch 2 loss 0.5", "generic") == [
        ("loss", 0.5, "per_rank", 2, 3)
    ]


@pytest.mark.parametrize("text", ["x 12.5", "x 1,234.5", "x -3e-4", "x .5", "x 1.5k tokens/s"])
def test_numbers(text: str) -> None:
    expected = {"12.5": 12.5, "1,234.5": 1234.5, "-3e-4": -3e-4, "1.5k": 1500.0}
    found = [one.value for one in quantities(text)]
    assert found == ([expected[text.split()[1]]] if text.split()[1] in expected else [])


@pytest.mark.parametrize(
    "text",
    ["v1.2.3", "2024-01-02", "03:04:05,678", "10.0.0.1:29500", "a1", "1e", "gpu-3", "5x", "7 9%d"],
)
def test_what_is_no_number(text: str) -> None:
    assert [one.text for one in quantities(text)] in ([], ["7"])
