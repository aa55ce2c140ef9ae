"""fairseq, metaseq: all of their writers."""

from __future__ import annotations

import pytest

from hpc_train.records.parse_stats import ParseStats
from tests.records.parse_text import brief, parse


def steps_of(text: bytes, metric: str) -> list[tuple[float, int | None, int]]:
    return [(hit.value, hit.step, hit.steps) for _, hit, _ in parse(text) if hit.metric == metric]


FAIRSEQ = (
    b'"loss": "16.5", "ppl": "9", "wps": "20480", "ups": "2.46", "wpb": "8192", "bsz": "8", '
    b'"num_updates": "%d", "lr": "1.25e-05", "gnorm": "4.5", "train_wall": "11", "wall": "18"}\n'
)


def test_fairseq_json_and_hydra() -> None:
    head = b'2024-05-01 10:00:00 | INFO | train_inner | {"epoch": 1, "update": 0.002, '
    hydra = b'[2024-05-01 10:00:00,1][train_inner][INFO] - {"epoch": 1, "update": 0.002, '
    text = head + FAIRSEQ % 25 + hydra + FAIRSEQ % 50
    assert steps_of(text, "step_time") == [(0.4, 25, 1), (0.4, 50, 25)]
    assert [hit[:4] for hit in brief(head + FAIRSEQ % 25)] == [
        ("loss", 16.5, "global", 25),
        ("tokens_per_second", 20_480, "global", 25),
        ("samples", 8, "global", 25),
        ("grad_norm", 4.5, "global", 25),
        ("learning_rate", 1.25e-5, "global", 25),
        ("step_time", 0.4, "global", 25),
    ]


def test_fairseq_simple_and_bar() -> None:
    fields = b"loss=14.5, ppl=9, wps=%s, ups=%s, wpb=%s, bsz=8, num_updates=%d, lr=0.1, gnorm=nan"
    text = (
        b"2024-05-01 10:00:00 | INFO | train_inner | epoch 001:    100 / 1105 "
        + fields % (b"20480", b"2.5", b"8192", 100)
        + b", train_wall=40, wall=44\nepoch 001:   9%|9| 200/1105 [00:40<06:41,  2.50it/s, "
        + fields % (b"0", b"4", b"0", 200)
        + b"]\n"
    )
    assert steps_of(text, "step_time") == [(0.4, 100, 1), (0.25, 200, 100)]
    assert steps_of(text, "tokens_per_second") == [(20_480, 100, 1)]


def test_fairseq_of_the_first_versions_and_before_the_first_update() -> None:
    text = (
        b"| epoch 002  1000 / 8000 loss=1.25 (1.50), wps=1000, wpb=500, bsz=32, lr=0.25, "
        b"clip=100%, gnorm=2.5\n"
        b"| epoch 001:   0%| | 50/800 [02:25<9:05:31,  2.92s/it, loss=0.000, ppl=1.00, wps=0, "
        b"ups=0.0, wpb=0, bsz=0, num_updates=0, lr=1e-07,\n"
    )
    census = ParseStats()
    found = {(h.metric, h.value, h.step) for _, h, _ in parse(text, census=census)}
    assert found == {
        ("loss", 1.25, 9000), ("tokens_per_second", 1000, 9000), ("samples", 32, 9000),
        ("grad_norm", 2.5, 9000), ("learning_rate", 0.25, 9000), ("step_time", 0.5, 9000),
    }  # fmt: skip
    assert not census.damaged


def test_fairseq_ranks_print_one_measurement_and_the_end_once() -> None:
    found = parse(b"x | done training in 3600.5 seconds\n" * 2)
    assert {(hit.metric, hit.value, hit.once) for _, hit, _ in found} == {
        ("time_to_train", 3600.5, "done")
    }


@pytest.mark.parametrize("update", [b'"-1"', b'"nan"', b"1e999"])
def test_fairseq_without_an_update_is_damaged(update: bytes) -> None:
    census = ParseStats()
    text = b'{"loss": "1", "wps": "2", "ups": "1", "wpb": "1", "num_updates": ' + update + b"}\n"
    assert parse(text, census=census) == []
    assert sum(census.damaged.values()) == 1
