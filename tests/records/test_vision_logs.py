"""Logs of the image trainers, and fairseq's."""

from __future__ import annotations

import pytest

from hpc_train.records.parse_stats import ParseStats
from tests.records.parse_text import brief, parse, values


def steps_of(text: bytes, metric: str) -> list[tuple[float, int | None, int]]:
    return [(hit.value, hit.step, hit.steps) for _, hit, _ in parse(text) if hit.metric == metric]


def test_imagenet_tabs_and_old_blanks() -> None:
    text = (
        b"2: Epoch: [1][ 10/100]\tTime  0.250 ( 0.342)\tData  0.000 ( 0.100)\t"
        b"Loss 6.9012e+00 (6.9321e+00)\tAcc@1   0.39 (  0.20)\tAcc@5   1.17 (  0.98)\n"
        b"Epoch: [0][0/391]\tTime 0.5 (0.7)\tSpeed 512.5 (400.1)\tLoss nan (nan)\tPrec@1 1 (1)\n"
        b"Test: [10/20]\tTime 0.1 (0.2)\tLoss 1.0 (1.0)\tAcc@1 1.0 (1.0)\n"
        b" *   Acc@1 75.000 Acc@5 92.500\n"
    )
    assert brief(text) == [
        ("step_time", 0.25, "per_rank", 110, 2),
        ("loss", 6.9012, "per_rank", 110, 2),
        ("step_time", 0.5, "per_rank", 0, None),
        ("samples_per_second", 512.5, "global", 0, None),
        ("accuracy", 0.75, "global", None, None),
    ]


def test_imagenet_ranks_that_share_a_line() -> None:
    half = b"Epoch: [0][ 1/100]\tTime  0.250 ( 0.342)\tData  0.000 ( 0.1)\tLoss 6.5e+00 (6.9e+00)\t"
    text = half + b"Acc@1   0.3" + half.replace(b"0.250", b"0.500") + b"Acc@1   0.39 (  0.20)\n"
    assert values(text, "step_time") == [0.25, 0.5]
    assert values(text, "loss") == [6.5, 6.5]


def test_accuracy_of_torchvision_and_of_old_example() -> None:
    assert values(
        b"Test:  Acc@1 50.000 Acc@5 75.0\n * Prec@1 25.000 Prec@5 50.0\n", "accuracy"
    ) == [
        0.5,
        0.25,
    ]


@pytest.mark.parametrize(
    ("line", "expected"),
    [(b" * Acc@1 71.500", [0.715]), (b" * Acc@1 71.5", []), (b" * Prec@1 7.250\t", [0.0725])],
)
def test_accuracy_that_ends_its_line_is_whole_with_three_decimals(
    line: bytes, expected: list[float]
) -> None:
    assert values(line + b"\n", "accuracy") == expected


def test_timm() -> None:
    text = (
        b"Train: 1 [  50/100 ( 51%)]  Loss: 6.91 (6.93)  Time: 0.250s, 4096.00/s  "
        b"(0.342s, 2994.15/s)  LR: 1.000e-05  Data: 0.010 (0.120)\n"
        b"Train: [2/300] [   0/100 (  0%)]  Loss:  6.912345 (6.9300)  Time: 9.8s,  104.50/s  "
        b"(9.8s, 104.5/s)  LR: nan\n"
        b"Test: [  10/48]  Time: 0.1 (0.2)  Loss:  1.2 (1.3)  Acc@1: 99.0 (98.0)  Acc@5: 9 (9)\n"
        b"Test: [  48/48]  Time: 0.1 (0.2)  Loss:  1.2 (1.3)  Acc@1: 80.0 ( 75.000)  Acc@5: 9 (9)\n"
        b"Test (EMA): [  48/48]  Time: 0.1 (0.2)  Acc@1: 80.0 ( 76.000)  Acc@5: 9 (9)\n"
    )
    assert brief(text) == [
        ("step_time", 0.25, "per_rank", 150, None),
        ("samples_per_second", 4096, "global", 150, None),
        ("loss", 6.91, "per_rank", 150, None),
        ("learning_rate", 1e-5, "global", 150, None),
        ("step_time", 9.8, "per_rank", 200, None),
        ("samples_per_second", 104.5, "global", 200, None),
        ("loss", 6.912345, "per_rank", 200, None),
        ("accuracy", 0.75, "global", None, None),
    ]


def test_torchvision() -> None:
    text = (
        b"Epoch: [1]  [ 10/100]  eta: 0:00:22  lr: 0.1000  img/s: 932.5 (812.3)  loss: 6.5 (6.9)  "
        b"acc1: 1.0 (1.0)  time: 0.2744  data: 0.0085  max mem: 20480\n"
        b"Epoch: [1]  [ 20/100]  eta: 1 day, 0:00:22  lr: 0.1000  time: 0.2500  data: 0.1\n"
        b"Test:  [ 0/97]  eta: 0:04:36  model_time: 1.5 (1.5)  time: 2.8  data: 1.2  max mem: 1\n"
        b"Epoch: [1] Total time: 0:20:31 (0.2693 s / it)\nTest: Total time: 0:00:59 (0.6 s / it)\n"
        b"Training time 1 day, 1:00:00\n"
    )
    assert ("samples_per_second", 932.5, "per_gpu", 110, None) in brief(text)
    assert ("memory", 20, "per_rank", 110, None) in brief(text)
    assert steps_of(text, "step_time") == [(0.2744, 110, 10), (0.25, 120, 10), (0.2693, None, 100)]
    assert steps_of(text, "epoch_time") == [(1231, 1, 1)]
    assert steps_of(text, "time_to_train") == [(90_000, None, 1)]


def test_dinov2_counts_iterations_of_the_run() -> None:
    head = b"I20240501 helpers.py:102] Training  [ 20/125000]  eta: 3 days, 1:02:03  "
    text = head + b"time: 0.5  data: 0\n"
    assert steps_of(text, "step_time") == [(0.5, 20, 20)]


def test_lavis_and_an_epoch_without_its_mean() -> None:
    text = (
        b"Train: data epoch: [1]  [ 50/100]  eta: 0:00:09  lr: 0.000022  loss: 2.5000  "
        b"time: 0.3750  data: 0.0000  max mem: 10240\n"
        b"Train: data epoch: [1] Total time: 0:00:37 (0.3700 s / it)\n"
        b"Epoch: [2] Total time: 0:00:35\n"
        b"Eval: data epoch: [1]  [ 50/100]  eta: 0:00:09    time: 0.5  data: 0.0  max mem: 1\n"
        b"Eval: data epoch: [1] Total time: 0:00:50 (0.5000 s / it)\n"
    )
    assert steps_of(text, "step_time") == [(0.375, 150, 20), (0.37, None, 100)]
    assert steps_of(text, "loss") == [(2.5, 150, 1)]
    assert steps_of(text, "epoch_time") == [(37, 1, 1), (35, 2, 1)]


def test_other_times_are_not_the_iteration() -> None:
    line = b"Epoch: [0/9]  [ 0/10]  eta: 0:00:01  model_time: 1.5 (1.5)  evaluator_time: 2 (2)\n"
    census = ParseStats()
    assert parse(line, census=census) == []
    assert sum(census.damaged.values()) == 1


def test_detectron2_old_and_new() -> None:
    text = (
        b"[05/01 10:00:00 d2.utils.events]:  eta: 1 day, 0:03:49  iter: 19  total_loss: 5.5  "
        b"loss_cls: 1.7  time: 0.5  data_time: 0.25  lr: 4e-05  max_mem: 2048M\n"
        b"[05/01 10:00:09 d2.utils.events]:  iter: 39  total_loss: 5.25  loss_cls: 1.7    "
        b"time: 0.5  last_time: 0.75  data_time: 0.25  last_data_time: 0.01   lr: N/A  "
        b"max_mem: 3072M\n"
    )
    assert brief(text) == [
        ("step_time", 0.5, "per_rank", 19, None),
        ("loss", 5.5, "global", 19, None),
        ("learning_rate", 4e-5, "global", 19, None),
        ("memory", 2, "per_rank", 19, None),
        ("step_time", 0.75, "per_rank", 39, None),
        ("loss", 5.25, "global", 39, None),
        ("memory", 3, "per_rank", 39, None),
    ]
    variants = [hit.variant for _, hit, _ in parse(text) if hit.metric == "step_time"]
    assert variants == ["running_average", ""], "the first is the mean since the start"
    steps = [hit.steps for _, hit, _ in parse(text) if hit.metric == "step_time"]
    assert steps == [20, 1]


def test_detectron2_and_maskrcnn_benchmark_end() -> None:
    text = (
        b"[05/01 10:02:21 d2.engine.hooks]: Overall training speed: 297 iterations in 0:02:10 "
        b"(0.4391 s / it)\n"
        b"[05/01 10:02:21 d2.engine.hooks]: Total training time: 0:02:12 (0:00:01 on hooks)\n"
    )
    assert steps_of(text, "step_time") == [(0.4391, None, 297)]
    assert values(text, "time_to_train") == [132]
    text = b"maskrcnn_benchmark.trainer INFO: Total training time: 0:01:15.5 (0.7550 s / it)\n"
    assert steps_of(maskrcnn(100) + text, "step_time")[1:] == [(0.755, None, 100)]
    assert values(maskrcnn(100) + text, "time_to_train") == [75.5]


@pytest.mark.parametrize("last", [0, 17, 79, 101, 9000])
def test_mean_that_is_divided_by_the_configured_iterations(last: int) -> None:
    text = b"maskrcnn_benchmark.trainer INFO: Total training time: 2:32:29.513567 (0.1144 s / it)\n"
    assert values(maskrcnn(80_000) + text, "step_time")[1:] == [0.1144]
    assert values(maskrcnn(last) * (last > 0) + text, "step_time") == [0.625] * (last > 0)
    assert values(text, "time_to_train") == [9149.513567]


def test_file_of_detectron2() -> None:
    text = (
        b'{"data_time": 0.25, "eta_seconds": 230.5, "iteration": 19, "lr": 4e-05, "time": 0.5, '
        b'"total_loss": 5.5}\n'
    )
    assert brief(text) == [
        ("step_time", 0.5, "per_rank", 19, None),
        ("loss", 5.5, "global", 19, None),
        ("learning_rate", 4e-5, "global", 19, None),
    ]
    census = ParseStats()
    assert parse(text[:-4] + b"\n" + b'{"total_loss": 5.5}\n', census=census) == []
    assert sum(census.damaged.values()) == 1


def maskrcnn(step: int) -> bytes:
    return (
        f"2024-05-01 10:00:00,695 maskrcnn_benchmark.trainer INFO: eta: 8:01:37  iter: {step}  "
        "loss: 1.5 (1.75)  loss_classifier: 0.05 (0.27)  time: 0.625 (0.75)  data: 0.01 (0.02)  "
        "lr: 0.007  max mem: 4096\n"
    ).encode()


def test_maskrcnn_benchmark() -> None:
    text = maskrcnn(20)
    assert steps_of(text + maskrcnn(30) + maskrcnn(90), "step_time") == [
        (0.625, 20, 1),
        (0.625, 30, 10),
        (0.625, 90, 20),
    ]
    assert brief(text) == [
        ("step_time", 0.625, "per_rank", 20, None),
        ("loss", 1.5, "global", 20, None),
        ("learning_rate", 0.007, "global", 20, None),
        ("memory", 4, "per_rank", 20, None),
    ]
    assert parse(b"solver  iter: 20  residual: 1e-5  time: 3.0  lr: 1\n") == []


def clip(epoch: int, seen: int, time: str = "0.500") -> bytes:
    return (
        f"2024-05-01,10:00:00 | INFO | Train Epoch: {epoch} [{seen:>5}/9728 (5%)] Data (t): 0.100 "
        f"Batch (t): {time}, 1024.00/s, 128.000/s/gpu LR: 0.000010 Logit Scale: 14.286 "
        "Contrastive_loss: 6.25 (6.5) Loss: 6.25 (6.5)\n"
    ).encode()


def test_open_clip_counts_in_samples() -> None:
    text = clip(0, 512) + clip(0, 5632) + clip(1, 512)
    assert steps_of(text, "step_time") == [(0.5, 1, 1), (0.5, 11, 10), (0.5, 20, 9)]
    assert [hit[:3] for hit in brief(clip(0, 512))] == [
        ("samples_per_second", 128, "per_gpu"),
        ("step_time", 0.5, "global"),
        ("samples_per_second", 1024, "global"),
        ("loss", 6.25, "per_rank"),
        ("learning_rate", 1e-5, "global"),
    ]


def test_open_clip_from_within_an_epoch_has_no_step() -> None:
    text = clip(3, 5120) + clip(3, 5632)
    assert steps_of(text, "step_time") == [(0.5, None, 1), (0.5, None, 1)]
    assert steps_of(clip(0, 512) + clip(0, 700), "step_time") == [(0.5, 1, 1), (0.5, None, 1)]


@pytest.mark.parametrize(
    "line",
    [
        b"Epoch: [0]  [ 20/100]  eta: 0:00:22  lr: 0.1  loss: 6.9125 (6.9321)  time: 0.27",
        b"Epoch: [1][ 10/100]\tTime  0.2",
        b"Train: 1 [  50/1251 (  4%)]  Loss: 6.91 (6.93)  Time: 0.213s, 480",
        b"Train Epoch: 0 [  512/9600 (5%)] Data (t): 0.100 Batch (t): 0.5",
        b"[05/01 10:00:00 d2.utils.events]:  eta: 0:03:49  iter: 19  total_loss: 5.9  time: 0.8",
        b'x | train_inner | {"epoch": 1, "wps": "20000", "ups": "2.5", "num_updates": "10',
    ],
)
def test_number_that_is_cut_is_no_time(line: bytes) -> None:
    assert values(line, "step_time") == []
