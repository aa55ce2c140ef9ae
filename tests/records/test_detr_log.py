"""log.txt of DETR, DeiT and MAE."""

from __future__ import annotations

import pytest

from hpc_train.records.parse_stats import ParseStats
from tests.records.parse_text import parse

LINE = (
    '{"train_lr": 5.06e-05, "train_loss": 6.697745880396437, "test_loss": 6.130513332508229, '
    '"test_acc1": 3.125, "test_acc5": 9.914, "epoch": 3, "n_parameters": 7148008}'
)
Found = list[tuple[str, float, str, int | None, str]]


def found(text: str) -> Found:
    return [
        (hit.metric, hit.value, hit.scope, hit.step, hit.variant)
        for _, hit, _ in parse(text.encode())
    ]


@pytest.mark.parametrize("prefix", ["", "0: ", "[1,0]<stdout>:"])
def test_line(prefix: str) -> None:
    assert found(prefix + LINE) == [
        ("loss", 6.697745880396437, "global", 3, ""),
        ("loss", 6.130513332508229, "global", 3, "validation"),
        ("accuracy", 0.03125, "global", 3, ""),
        ("learning_rate", 5.06e-05, "global", 3, ""),
    ]


def test_pretraining_has_only_a_loss() -> None:
    line = '{"train_lr": 0.0001, "train_loss": 0.75, "epoch": 0}'
    assert [row[:2] for row in found(line)] == [("loss", 0.75), ("learning_rate", 0.0001)]


def test_cut_line_states_nothing() -> None:
    census = ParseStats()
    assert not parse(LINE[:-1].encode(), "detr_log", census=census)
    assert census.damaged == {"log": 1}


@pytest.mark.parametrize(
    "line",
    [
        '{"train_loss": 0.75, "epoch": 0}',
        '{"train_lr": 0.0001, "train_loss": 0.75, "epoch": "0"}',
        '    {"train_lr": 0.0001, "train_loss": 0.75, "epoch": 1},',
        "{'train_lr': 0.0001, 'train_loss': 0.75, 'epoch': 1}",
        '{"train_lr": NaN, "train_loss": Infinity, "epoch": 1}',
    ],
)
def test_objects_of_others(line: str) -> None:
    assert not found(line)
