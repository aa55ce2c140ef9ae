"""DLLogger: its two back ends, units, and what is no measurement of the training."""

from __future__ import annotations

import pytest

from hpc_train.records.parse_stats import ParseStats
from tests.records.parse_text import brief, parse

HEAD = "DLL 2024-05-06 07:08:09.123456 - "


def facts(text: str) -> list[tuple[str, float, int | None]]:
    return [(metric, value, step) for metric, value, _, step, _ in brief(text.encode())]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "(0, 10) train.loss : 6.91 None train.total_ips : 2456.7 img/s train.lr : 0.1 None",
            [("loss", 6.91, 10), ("samples_per_second", 2456.7, 10), ("learning_rate", 0.1, 10)],
        ),
        (
            "Epoch: 0 Iteration: 10  train.loss : 6.91  train.compute_ips : 9.0 img/s",
            [("loss", 6.91, 10)],
        ),
        (
            "Training Epoch: 0 Training Iteration: 3  average_loss : 11.0  step_loss : 10.5  "
            "learning_rate : 3e-06 ",
            [("loss", 10.5, 3), ("learning_rate", 3e-06, 3)],
        ),
        (
            " e2e_train_time : 80.5 s training_sequences_per_second : 812.3 sequences/s "
            "final_loss : 1.5 None",
            [("time_to_train", 80.5, None), ("samples_per_second", 812.3, None)],
        ),
        ("(1, 5) step_time : 250.0 ms loss : 2.0 ", [("step_time", 0.25, 5), ("loss", 2.0, 5)]),
        ("(0,) val.top1 : 71.5 % val.loss : 1.2 None", [("accuracy", 0.715, None)]),
        ("(1, 5) loss : 2.0 lr : 0.5", [("loss", 2.0, 5), ("learning_rate", 0.5, 5)]),
        ("PARAMETER lr : 0.1 batch_size : 64 ", []),
        (
            "epoch    1 | iter   2/48 | loss 40.50 | mel loss 35.25 |  5730.98 frames/s | "
            "took 24.5 s | lrate 3.2e-06",
            [("loss", 40.5, 2), ("step_time", 24.5, 2), ("learning_rate", 3.2e-06, 2)],
        ),
        (
            "epoch    1 | iter   2/19 | loss 36.5 | 142370.52 items/s | elapsed 2.50 s | "
            "lrate 1.00E-01 -> 3.25E-06",
            [("loss", 36.5, 2), ("step_time", 2.5, 2), ("learning_rate", 3.25e-06, 2)],
        ),
        (
            "Iteration: 16  throughput_train : 145.25 seq/s mlm_loss : 10.4  total_loss : 11.5  "
            "avg_loss_step : 11.1  learning_rate : 5.25e-06 ",
            [
                ("samples_per_second", 145.25, 16),
                ("loss", 11.5, 16),
                ("learning_rate", 5.25e-6, 16),
            ],
        ),
        ("(6001, 129) train_iter_time : 3.5 ", [("step_time", 3.5, 129)]),
        ("Epoch: 3 val.top1 : 50.0 %", [("accuracy", 0.5, None)]),
    ],
)
def test_text(text: str, expected: list[tuple[str, float, int | None]]) -> None:
    assert facts(HEAD + text) == expected


def test_json_knows_the_units_of_the_metadata() -> None:
    text = """\
DLLL {"type": "METADATA", "metric": "train.step_time", "metadata": {"unit": "ms", "format": ":.1f"}}
DLLL {"type": "LOG", "step": "PARAMETER", "data": {"lr": 0.5}}
0: DLLL {"timestamp": "1", "type": "LOG", "step": [0, 2], "data": {"train.step_time": 250, "a": []}}
DLLL {"type": "LOG", "step": [], "data": {"train.throughput": "12.5", "eval_loss": 1.0}} words
"""
    assert facts(text) == [("step_time", 0.25, 2), ("samples_per_second", 12.5, None)]


def test_neuron_writes_the_time_in_words() -> None:
    text = (
        "[0]:LOG Wed May  1 10:12:27 2024 - (0, 14) step_loss : 11.2500 learning_rate : 2.5e-06 "
        "throughput : 6497.50 grad-norm : 2.5\n"
    )
    assert facts(text) == [
        ("loss", 11.25, 14),
        ("learning_rate", 2.5e-6, 14),
        ("samples_per_second", 6497.5, 14),
        ("grad_norm", 2.5, 14),
    ]


def test_json_of_nemo_counts_steps_of_the_run() -> None:
    text = (
        'DLLL {"timestamp": "1", "type": "LOG", "step": 47, "data": {"reduced_train_loss": 7.5, '
        '"lr": 0.25, "global_step": 47, "train_backward_timing in s": 4e-05, "grad_norm": 8.5, '
        '"train_step_timing in s": 25.5, "epoch": 0}}'
    )
    assert facts(text) == [
        ("loss", 7.5, 47),
        ("learning_rate", 0.25, 47),
        ("grad_norm", 8.5, 47),
        ("step_time", 25.5, 47),
    ]


def test_steps_count_on_over_epochs() -> None:
    lines = (f"{HEAD}({e}, {s}) loss : 1.0 \n" for e, s in ((0, 1), (0, 2), (1, 1), (1, 1)))
    assert [step for _, _, step in facts("".join(lines))] == [1, 2, 3, 3]


def test_place_that_has_lost_its_comma_is_not_known() -> None:
    assert facts(HEAD + "(0 10) train.loss : 6.91 None") == [("loss", 6.91, None)]


def test_a_percentage_above_100_is_none() -> None:
    assert facts(HEAD + "(0,) val.top1 : 171.5 %") == []
    assert facts(HEAD + "(0,) accuracy : 71.5 None") == []


@pytest.mark.parametrize("text", [b"DLLL {", b'DLLL {"type": "LOG", "da'])
def test_cut_json_is_counted(text: bytes) -> None:
    census = ParseStats()
    assert parse(text, census=census) == []
    assert census.damaged["log"] == 1
