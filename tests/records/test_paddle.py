"""Paddle's suites and PaddleNLP's Trainer: places, scopes, means."""

from __future__ import annotations

import pytest

from hpc_train.records.parse_stats import ParseStats
from tests.records.parse_text import parse

DETECTION = (
    "[11/09 20:15:14] ppdet.engine INFO: Epoch: [{}] [ {}/157] learning_rate: 0.000042 "
    "loss: 1.623144 loss_cls: 0.784792 eta: 0:33:30 batch_cost: 0.4564 data_cost: 0.0005 "
    "ips: 17.5284 images/s"
)
GPT = (
    "[2022-07-27 12:40:00,967] [    INFO] - global step 2, epoch: 0, batch: 1, "
    "loss: 11.054802895, avg_reader_cost: 0.00014 sec, avg_batch_cost: 0.13314 sec, "
    "speed: 7.51 step/s, ips_total: 61529 tokens/s, ips: 7691 tokens/s, learning rate: 8.33333e-09"
)
TRAINER = (
    "[2022-08-31 16:19:16,008] [    INFO] - loss: 3.25806541, learning_rate: 2.9992e-05, "
    "global_step: 10, interval_runtime: 2.2591, interval_samples_per_second: 3.541, "
    "interval_steps_per_second: 4.427, epoch: 0.0265"
)
Found = list[tuple[str, float, str, int | None, int, str]]


def found(text: str) -> Found:
    return [
        (hit.metric, hit.value, hit.scope, hit.step, hit.steps, hit.variant)
        for _, hit, _ in parse(text.encode())
    ]


@pytest.mark.parametrize("prefix", ["", "0: ", "[1,0]<stdout>:"])
def test_detection(prefix: str) -> None:
    text = f"{prefix}{DETECTION.format(1, 0)}\n{prefix}{DETECTION.format(1, 20)}\n"
    assert found(text)[4:] == [
        ("learning_rate", 4.2e-05, "global", 178, 1, ""),
        ("loss", 1.623144, "per_rank", 178, 20, ""),
        ("step_time", 0.4564, "per_rank", 178, 20, ""),
        ("samples_per_second", 17.5284, "per_rank", 178, 20, ""),
    ]
    assert {row[4] for row in found(text)[:4]} == {1}


def test_tokens_of_all_and_of_one() -> None:
    assert found(GPT) == [
        ("loss", 11.054802895, "per_rank", 2, 1, ""),
        ("step_time", 0.13314, "per_rank", 2, 1, ""),
        ("tokens_per_second", 61529.0, "global", 2, 1, ""),
        ("tokens_per_second", 7691.0, "per_gpu", 2, 1, ""),
        ("learning_rate", 8.33333e-09, "global", 2, 1, ""),
    ]


def test_tokens_of_nobody_knows_how_many() -> None:
    line = GPT.replace("ips_total: 61529 tokens/s, ", "")
    assert [row[0] for row in found(line)] == ["loss", "step_time", "learning_rate"]


@pytest.mark.parametrize(
    ("line", "step", "time", "rate"),
    [
        (
            "[2022/02/22 07:58:13] root INFO: epoch: [1/800], iter: 20, lr: 0.000001, "
            "loss: 0.924677, acc: 0.000000, reader_cost: 0.00236 s, batch_cost: 0.28528 s, "
            "samples: 1280, ips: 448.68599",
            20,
            0.28528,
            448.68599,
        ),
        (
            "[2022/08/16 03:08:41] ppocr INFO: epoch: [1/400], global_step: 40, lr: 0.000100, "
            "loss: 1.750859, avg_reader_cost: 0.02533 s, avg_batch_cost: 3.37251 s, "
            "avg_samples: 48.0, ips: 14.23271 samples/s, eta: 6 days, 23:28:43",
            40,
            3.37251,
            14.23271,
        ),
        (
            "[11/16 04:40:37] epoch:[  1/1  ] train step:100  loss: 5.31382 lr: 0.000250 "
            "batch_cost: 0.73082 sec, reader_cost: 0.38075 sec, ips: 5.47330 instance/sec.",
            100,
            0.73082,
            5.4733,
        ),
        (
            "[Epoch 1, iter: 4780] top1: 0.10312, lr: 0.01000, loss: 5.34719, avg_reader_cost: "
            "0.03644 sec, avg_batch_cost: 0.05536 sec, avg_samples: 64.0, "
            "avg_ips: 1156.08863 images/sec.",
            4780,
            0.05536,
            1156.08863,
        ),
        (
            "2021-05-01 10:00:00 [INFO]\t[TRAIN] epoch: 1, iter: 10/1000, loss: 2.6500, "
            "lr: 0.009919, batch_cost: 0.2125, reader_cost: 0.01000, "
            "ips: 18.8235 samples/sec | ETA 00:03:30",
            10,
            0.2125,
            18.8235,
        ),
    ],
)
def test_other_suites(line: str, step: int, time: float, rate: float) -> None:
    rows = [row for row in found(line) if row[0] in ("step_time", "samples_per_second")]
    assert rows == [
        ("step_time", time, "per_rank", step, 1, ""),
        ("samples_per_second", rate, "per_rank", step, 1, ""),
    ]


def test_classification_prints_running_means() -> None:
    line = (
        "[2022/01/01 10:00:00] ppcls INFO: [Train][Epoch 2/10][Iter: 20/100]"
        "lr(CosineAnnealingDecay): 0.00100000, CELoss: 7.00000, loss: 7.00000, "
        "batch_cost: 0.28000s, reader_cost: 0.00100, ips: 228.50000 samples/s, eta: 1:00:00"
    )
    assert found(line) == [
        ("learning_rate", 0.001, "global", 20, 1, ""),
        ("loss", 7.0, "per_rank", 20, 1, "running_average"),
        ("step_time", 0.28, "per_rank", 20, 1, "running_average"),
        ("samples_per_second", 228.5, "per_rank", 20, 1, "running_average"),
    ]


@pytest.mark.parametrize(
    "line",
    [
        "ppcls INFO: [Eval][Epoch 0][Iter: 20/157]CELoss: 0.14618, loss: 0.14618, "
        "batch_cost: 0.02379s, reader_cost: 0.00016, ips: 2690.05243 images/sec",
        "[11/16 04:40:37] epoch:[  1/1  ] val step:0    loss: 4.42741 batch_cost: 1.37882 sec, "
        "ips: 2.90104 instance/sec.",
        "Epoch ID: 2, Epoch time: 1.79473 s, batch_cost: 1.53388 s, avg ips: 31951.29112 samples/s",
    ],
)
def test_evaluations_state_nothing(line: str) -> None:
    assert not found(line)


def test_rate_that_six_decimals_do_not_show() -> None:
    assert "learning_rate" not in [
        row[0] for row in found(DETECTION.format(0, 0).replace("0.000042", "0.000000"))
    ]


def test_cut_lines() -> None:
    for line in (DETECTION.format(1, 20), GPT):
        whole = {(row[0], row[2]): row[1] for row in found(line)}
        for length in range(len(line)):
            for name, value, scope, *_ in found(line[:length]):
                assert value == pytest.approx(whole[name, scope], abs=1e-4), line[:length]


def test_interleaved_line_is_counted() -> None:
    census = ParseStats()
    line = GPT.replace("avg_batch_cost: 0.13314", "avg_batch_cost: 0.13NCCL INFO")
    assert not parse(line.encode(), census=census)
    assert census.damaged == {"log": 1}


def test_trainer() -> None:
    assert found(TRAINER) == [
        ("loss", 3.25806541, "global", 10, 10, ""),
        ("learning_rate", 2.9992e-05, "global", 10, 1, ""),
        ("step_time", pytest.approx(0.22591), "global", 10, 10, ""),
    ]


def test_trainer_of_large_models() -> None:
    line = (
        "[    INFO] - loss: 12.0635252, learning_rate: 2e-06, global_step: 1, "
        "max_memory_reserved: 7.75, interval_runtime: 1.1518, interval_samples_per_second: 0.8682, "
        "interval_tokens_per_second_per_device: 889.0448, "
        "interval_hardware_tflops_per_device: 2.77, interval_steps_per_second: 0.8682, "
        "progress_or_epoch: 0.0"
    )
    assert found(line) == [
        ("loss", 12.0635252, "global", 1, 1, ""),
        ("learning_rate", 2e-06, "global", 1, 1, ""),
        ("tokens_per_second", 889.0448, "per_gpu", 1, 1, ""),
        ("tflops", 2.77, "per_gpu", 1, 1, "hardware"),
        ("step_time", 1.1518, "global", 1, 1, ""),
    ]


def test_trainer_states_nothing_when_cut() -> None:
    for length in range(TRAINER.index(", epoch")):
        assert not found(TRAINER[:length])
