"""MMEngine and MMCV 1.x: lines of text, files of JSON, windows, validations."""

from __future__ import annotations

import json

import pytest

from hpc_train.records.parse_stats import ParseStats
from tests.records.parse_text import parse

NEW = (
    "2022/12/13 19:00:18 - mmengine - INFO - Epoch(train) [2][ 100/3104]  base_lr: 2.0000e-02 "
    "lr: 1.0000e-02  eta: 0:25:32  time: 0.1204  data_time: 0.0024  memory: 2560  "
    "grad_norm: 8.5000  loss: 0.5537  loss_rpn_cls: 0.0577  acc: 87.8906"
)
OLD = (
    "2021-01-25 19:25:44,459 - mmdet - INFO - Epoch [2][100/5455]\tlr: 4.983e-04, eta: 8:02:25, "
    "time: 0.443, data_time: 0.047, memory: 3584, loss_rpn_cls: 0.1925, s0.acc: 87.7969, "
    "loss: 1.4106, grad_norm: 10.6679"
)
Found = list[tuple[object, ...]]


def found(text: str) -> Found:
    return [
        (hit.metric, hit.value, hit.scope, hit.step, hit.steps)
        for _, hit, _ in parse(text.encode())
    ]


@pytest.mark.parametrize("prefix", ["", "0: ", "[rank0]: ", "(RayTrainWorker pid=7, ip=10.0.0.1) "])
def test_mmengine(prefix: str) -> None:
    assert found(prefix + NEW) == [
        ("learning_rate", 0.01, "global", 3204, 1),
        ("step_time", 0.1204, "per_rank", 3204, 10),
        ("memory", 2.5, "per_rank", 3204, 1),
        ("grad_norm", 8.5, "global", 3204, 10),
        ("loss", 0.5537, "per_rank", 3204, 10),
    ]


@pytest.mark.parametrize(
    ("config", "steps"),
    [
        ("log_processor = dict(by_epoch=True, type='LogProcessor', window_size=50)", 50),
        ("log_processor = dict(", 10),
        ("model = dict(backbone=dict(type='SwinTransformer', window_size=7))", 10),
    ],
)
def test_window(config: str, steps: int) -> None:
    times = [row for row in found(f"{config}\n{NEW}\n") if row[0] == "step_time"]
    assert [row[4] for row in times] == [steps]


def test_window_is_not_larger_than_the_run() -> None:
    line = NEW.replace("[2][ 100/3104]", "[1][8/8]")
    assert {row[4] for row in found(line) if row[0] == "step_time"} == {8}


def test_mmcv() -> None:
    first, second = OLD.replace("[100/", "[50/"), OLD
    assert found(f"{first}\n{second}\n")[5:] == [
        ("learning_rate", 4.983e-04, "global", 5555, 1),
        ("step_time", 0.443, "per_rank", 5555, 50),
        ("memory", 3.5, "per_rank", 5555, 1),
        ("loss", 1.4106, "global", 5555, 50),
        ("grad_norm", 10.6679, "global", 5555, 50),
    ]


def test_tab_of_mmcv_may_have_become_blanks() -> None:
    assert found(OLD.replace("\t", "     ")) == found(OLD)


def test_iterations_over_the_run() -> None:
    line = NEW.replace("Epoch(train) [2][ 100/3104]", "Iter(train) [  100/80000]")
    assert {row[3] for row in found(line)} == {100}
    line = OLD.replace("Epoch [2][100/5455]", "Iter [100/160000]")
    assert {row[3] for row in found(line)} == {100}


@pytest.mark.parametrize(
    ("line", "accuracy"),
    [
        (
            "Epoch(val) [86][28/28]  accuracy/top1: 70.7207  data_time: 0.0004  time: 0.0601",
            0.707207,
        ),
        ("Epoch(val) [86][28/28]    acc/top1: 0.7072  acc/top5: 0.9000  data_time: 0.1000", 0.7072),
        ("Epoch(val) [86][98]\taccuracy_top-1: 70.5000, accuracy_top-5: 90.1000", 0.705),
    ],
)
def test_accuracy(line: str, accuracy: float) -> None:
    assert found(f"2023/06/08 21:40:47 - mmengine - INFO - {line}") == [
        ("accuracy", pytest.approx(accuracy), "global", 86, 1)
    ]


def test_part_of_a_validation_states_nothing() -> None:
    assert not found("Epoch(val)  [86][10/28]    eta: 0:00:01  time: 0.0796  data_time: 0.0178  ")


def test_cut_lines() -> None:
    for line in (NEW, OLD):
        whole = {row[0]: row[1] for row in found(line)}
        for length in range(len(line)):
            for name, value, *_ in found(line[:length]):
                assert value == whole[name], line[:length]


def test_no_gpu_has_no_memory() -> None:
    line = NEW.replace("memory: 2560", "memory: 0")
    assert "memory" not in [row[0] for row in found(line)]
    assert "memory" not in [row[0] for row in found(json.dumps(JSON | {"memory": 0}))]


def test_damaged_line_is_counted() -> None:
    census = ParseStats()
    assert not parse(NEW[: NEW.index("time: ")].encode(), census=census)
    assert census.damaged == {"log": 1}


JSON = {
    "lr": 0.01,
    "data_time": 0.004,
    "grad_norm": 8.5,
    "loss": 0.7176,
    "time": 0.1285,
    "epoch": 2,
    "iter": 150,
    "memory": 2560,
    "step": 150,
}


def test_json_of_mmengine() -> None:
    assert found(json.dumps(JSON)) == [
        ("step_time", 0.1285, "per_rank", 150, 1),
        ("loss", 0.7176, "per_rank", 150, 1),
        ("grad_norm", 8.5, "global", 150, 1),
        ("learning_rate", 0.01, "global", 150, 1),
        ("memory", 2.5, "per_rank", 150, 1),
    ]


@pytest.mark.parametrize(
    ("places", "steps"),
    [
        ([(1, 50), (1, 100), (2, 50), (2, 100)], [50, 100, 150, 200]),
        # Iterations that count on, and one line an epoch.
        ([(1, 50), (1, 100), (2, 150)], [50, 100, 150]),
        ([(1, 50), (2, 50), (3, 50)], [50, 100, 150]),
    ],
)
def test_json_of_mmcv(places: list[tuple[int, int]], steps: list[int]) -> None:
    lines = [
        json.dumps(JSON | {"mode": "train", "epoch": epoch, "iter": done}) for epoch, done in places
    ]
    rows = [row for row in found("\n".join(lines)) if row[0] == "loss"]
    assert [row[3] for row in rows] == steps
    assert [row[4] for row in rows] == [1] + [50] * (len(steps) - 1)
    assert {row[2] for row in rows} == {"global"}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ({"accuracy/top1": 70.5, "data_time": 0.1, "time": 0.2, "step": 3}, [(0.705, 3)]),
        ({"mode": "val", "epoch": 4, "iter": 98, "accuracy_top-1": 70.5}, [(0.705, 4)]),
        ({"mode": "val", "epoch": 4, "iter": 98, "bbox_mAP": 0.4}, []),
        ({"data_time": 0.008, "iteration": 19, "total_loss": 1.9, "lr": 0.007, "time": 0.25}, None),
    ],
)
def test_other_lines_of_json(
    line: dict[str, object], expected: list[tuple[float, int]] | None
) -> None:
    if expected is None:
        assert not parse(json.dumps(line).encode(), "mmengine_json")
        return
    assert found(json.dumps(line)) == [
        ("accuracy", pytest.approx(value), "global", epoch, 1) for value, epoch in expected
    ]


def test_cut_json_states_nothing() -> None:
    text = json.dumps(JSON)
    for length in range(len(text)):
        assert not found(text[:length])
